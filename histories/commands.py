"""``pythia history``: record what transactions do on services that are up, and check that it was snapshot isolated."""

from __future__ import annotations

import json
import sys
import uuid
from collections import Counter
from pathlib import Path

import click

from client import ClientSettings, PythiaError, TransactionManager
from configuration.connection_flags import root_flag, thrift_flag, zookeeper_flag
from histories.anomalies import Anomaly
from histories.checker import check as check_history
from histories.driver import drive
from histories.errors import HistoryError
from histories.files import load, load_key_value, save, save_key_value
from histories.history import History
from histories.recorder import TRANSACTIONS_MAX, Recorder
from histories.workloads import WORKLOADS, Workload
from store import StoreError

UNREADABLE = 2
ANOMALIES_FOUND = 1

_file = click.Path(dir_okay=False, path_type=Path)


class Unreadable(click.ClickException):
    """A file that holds no history."""

    exit_code = UNREADABLE


@click.group()
def history() -> None:
    """Record what transactions do, and check that it was snapshot isolated."""


@history.command()
@click.argument("files", nargs=-1, required=True, type=_file)
@click.option("--kv", "key_value", is_flag=True, help="The files are in the public key-value form of other checkers.")
@click.option("--show", default=20, show_default=True, type=click.IntRange(0), help="How many findings to print.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def check(files: tuple[Path, ...], key_value: bool, show: int, as_json: bool) -> None:
    """Check a history; several FILES are parts of one, recorded by several processes of one machine.

    Exits with 1 when it was not snapshot isolated, and with 2 when it cannot be read.
    """
    try:
        recorded = History.merged([(load_key_value if key_value else load)(path) for path in files])
        workload = _workload_of(recorded)
    except HistoryError as error:
        raise Unreadable(str(error)) from error
    findings = check_history(recorded) + (workload.check(recorded) if workload else [])
    if as_json:
        click.echo(json.dumps({"transactions": len(recorded.transactions), "anomalies": [*map(_described, findings)]}))
    else:
        _print(recorded, workload, findings, show)
    sys.exit(ANOMALIES_FOUND if findings else 0)


@history.command()
@zookeeper_flag("where the primary oracle is found.")
@thrift_flag
@root_flag
@click.option("--workload", "name", required=True, type=click.Choice(sorted(WORKLOADS)), help="What to run.")
@click.option("--seconds", default=10.0, show_default=True, type=click.FloatRange(0.1, 86_400), help="For how long.")
@click.option("--threads", default=4, show_default=True, type=click.IntRange(1, 1_000), help="By how many threads.")
@click.option("--seed", default=0, show_default=True, help="Of the choices that the threads make.")
@click.option("--transactions-max", default=TRANSACTIONS_MAX, show_default=True, type=click.IntRange(1),
              help="End when so many are recorded.")  # fmt: skip
@click.option("--keep-table", is_flag=True, help="Leave the table of the workload as it is at the end.")
@click.option("--out", required=True, type=_file, help="The file for the history.")
def record(
    zookeeper: str,
    thrift: str,
    root: str,
    name: str,
    seconds: float,
    threads: int,
    seed: int,
    transactions_max: int,
    keep_table: bool,
    out: Path,
) -> None:
    """Run a workload in a table of its own on services and an oracle that are up, and write its history to a file."""
    table = f"history_{name.replace('-', '_')}_{uuid.uuid4().hex[:12]}"
    try:
        out.touch()  # a file that cannot be written is better known before than after
        settings = ClientSettings(zookeeper=zookeeper, thrift=thrift, root=root)
        with TransactionManager.connect(settings) as manager:
            workload = WORKLOADS[name](table)
            workload.setup(manager)
            recorder = Recorder(manager, workload.cells, transactions_max=transactions_max)
            try:
                driven = drive(workload, recorder, threads=threads, seconds=seconds, seed=seed)
                unsettled = recorder.settle()
                if not driven.full:
                    workload.final_state(recorder)
            finally:
                save(recorder.history(name), out)
            if not keep_table:
                manager.drop_table(table)
    except (HistoryError, PythiaError, StoreError, OSError) as error:
        raise click.ClickException(str(error)) from error
    full = f"; ended early, {transactions_max:,} transactions were recorded" if driven.full else ""
    click.echo(
        f"{_summary(recorder.history())}; {unsettled} outcomes unknown; "
        f"services failed {driven.unavailable} steps{full}{f'; table {table}' if keep_table else ''}"
    )


@history.command()
@click.argument("file", type=_file)
@click.option("--out", required=True, type=_file, help="The file for the public key-value form.")
def export(file: Path, out: Path) -> None:
    """Write the committed transactions of a history in the public key-value form, for other checkers."""
    try:
        recorded = load(file)
        save_key_value(recorded, out)
    except HistoryError as error:
        raise Unreadable(str(error)) from error
    except OSError as error:
        raise click.ClickException(str(error)) from error
    click.echo(_summary(recorded))


def _workload_of(recorded: History) -> Workload | None:
    if recorded.workload is None:
        return None
    if recorded.workload not in WORKLOADS:
        raise HistoryError(f"workload {recorded.workload!r} is not known here, only {', '.join(sorted(WORKLOADS))}")
    return WORKLOADS[recorded.workload]("not read")


def _described(finding: Anomaly) -> dict[str, object]:
    return {
        "kind": finding.kind.name.lower(),
        "text": finding.text,
        "transactions": finding.transactions,
        "key": finding.key,
    }


def _summary(recorded: History) -> str:
    outcomes = Counter(each.outcome.value for each in recorded.transactions)
    return f"{len(recorded.transactions):,} transactions: " + ", ".join(
        f"{count:,} {outcome}" for outcome, count in sorted(outcomes.items())
    )


def _print(recorded: History, workload: Workload | None, findings: list[Anomaly], show: int) -> None:
    click.echo(_summary(recorded))
    if workload is not None:
        remark = workload.remark(recorded)
        click.echo(f"workload {workload.name}: {remark or workload.promise}")
    for finding in findings[:show]:
        click.echo(f"  {finding}")
    if len(findings) > show:
        kinds = Counter(finding.kind.value for finding in findings)
        click.echo(
            f"  … {len(findings):,} in all: " + "; ".join(f"{count:,} × {kind}" for kind, count in kinds.items())
        )
    click.echo("NOT snapshot isolated" if findings else "snapshot isolated")
