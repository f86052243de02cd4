"""``pythia check``: the services that a program needs, looked at from where it would run."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any

import click

from client.checkup.findings import is_well
from client.checkup.looking import CheckUp
from client.command_line import explained
from client.configured import load_settings
from configuration.options import file_flag

TABLES_MAX = 100

_PLACES = {
    "zookeeper": ("HOST:PORT[,…]", "ZooKeeper, where the primary oracle is found."),
    "oracle": ("HOST:PORT", "In its place: an oracle that serves alone."),
    "thrift": ("HOST:PORT[,…]", "HBase's Thrift gateways."),
    "thrift2": ("HOST:PORT[,…]", "HBase's Thrift 2 gateways, which make tables of several regions."),
    "root": ("ZNODE", "Znode of the installation."),
}
_ELSE = "Not given: as the file or the environment says."


def _place_flags(command: Any) -> Any:
    for name, (metavar, text) in reversed(_PLACES.items()):
        command = click.option(f"--{name}", metavar=metavar, help=f"{text} {_ELSE}")(command)
    return command


@click.command()
@click.argument("tables", nargs=-1, metavar="[TABLE…]")
@file_flag
@_place_flags
@click.option("--timeout-ms", default=5_000, show_default=True, type=click.IntRange(1, 3_600_000),
              help="For each service that is asked, in milliseconds.")  # fmt: skip
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON: an object with `findings`, and whether all is `well`."
)
def check(tables: tuple[str, ...], file: str | None, timeout_ms: int, as_json: bool, **places: str | None) -> None:
    """Look from this machine at each service that a program needs, and say what is wrong: ZooKeeper, the primary, each
    of HBase's gateways, Pythia's own tables, the oracle, clocks, and TABLEs of data.

    With the settings that a program would have here, from the file and the environment: tokens, certificates and
    Kerberos included. Changes nothing. Exit code 1 where something has failed; warnings are none.
    """
    if len(tables) > TABLES_MAX:
        raise click.UsageError(f"{TABLES_MAX} tables at most, not {len(tables)}")
    with explained():
        settings = load_settings(file, os.environ, flags=_with_one_place(places))
        settings = replace(settings, request_timeout_ms=timeout_ms, deadline_ms=timeout_ms)
        found = []
        for finding in CheckUp(settings, list(dict.fromkeys(tables))).findings():
            found.append(finding)
            if not as_json:
                click.echo(finding.line())
    well = is_well(found)
    if as_json:
        click.echo(json.dumps({"well": well, "findings": [finding.fields() for finding in found]}, indent=2))
    if not well:
        raise SystemExit(1)


def _with_one_place(places: dict[str, str | None]) -> dict[str, str | None]:
    """A flag for one of the two has precedence over the other one's variable, as with all commands."""
    zookeeper, oracle = places["zookeeper"], places["oracle"]
    if zookeeper and oracle is None:
        return {**places, "oracle": ""}
    if oracle and zookeeper is None:
        return {**places, "zookeeper": ""}
    return places
