"""``pythia drill``: pull the plug on real processes, and look at what is left."""

from __future__ import annotations

import json
import sys

import click
from rich.console import Console
from rich.table import Table

from client import ClientSettings, PythiaError
from configuration.connection_flags import root_flag, thrift_flag, zookeeper_flag
from drills import writer_kill
from drills.compose.commands import compose_command
from drills.failover_commands import failover_command, list_command, mixed_command
from store import StoreError


@click.group()
def drill() -> None:
    """Pull the plug on real processes, and look at what is left."""


for _command in (failover_command, mixed_command, compose_command, list_command):
    drill.add_command(_command)


@drill.command("writer-kill")
@zookeeper_flag("where the primary oracle is found.")
@thrift_flag
@root_flag
@click.option(
    "--rounds",
    default=3,
    show_default=True,
    type=click.IntRange(1, writer_kill.ROUNDS_MAX),
    help="How often a writer is killed at each step.",
)
@click.option(
    "--rows",
    default=50,
    show_default=True,
    type=click.IntRange(1, writer_kill.ROWS_MAX),
    help="Rows that it writes in each of two tables.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def writer_kill_command(zookeeper: str, thrift: str, root: str, rounds: int, rows: int, as_json: bool) -> None:
    """Kill -9 a writer before its commit is sent, after it is sent, and after the answer.

    Exits with 1 when a reader saw a part of a transaction, or an acknowledged commit was lost.
    """
    try:
        settings = ClientSettings(zookeeper=zookeeper, thrift=thrift, root=root)
        findings = list(writer_kill.run(settings, rounds=rounds, rows=rows))
    except (PythiaError, StoreError) as error:
        raise click.ClickException(str(error)) from error
    anomalies = [finding.anomaly for finding in findings if finding.anomaly]
    if as_json:
        click.echo(json.dumps({"kills": len(findings), "anomalies": anomalies}))
    else:
        _print_table(findings)
    sys.exit(1 if anomalies else 0)


def _print_table(findings: list[writer_kill.Finding]) -> None:
    table = Table(title="writers killed with SIGKILL")
    for heading in ("killed", "transaction", "rows seen", "outcome", "shadow cells", "anomaly"):
        table.add_column(heading)
    for finding in findings:
        table.add_row(
            finding.step.value,
            str(finding.start_timestamp),
            f"{finding.rows_seen} of {finding.rows_written}",
            type(finding.outcome).__name__.lower(),
            f"{finding.shadows_before} → {finding.shadows_after}",
            finding.anomaly or "none",
        )
    Console().print(table)
