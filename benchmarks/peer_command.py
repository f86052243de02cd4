"""``pythia bench peer``: the project's oracle beside its peer, in one run on one machine.

Invariant: the peer runs as it ships and in the settings that suit a case best, and the better of them counts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from benchmarks import contest, peer_report
from benchmarks.compiled_code import Code
from benchmarks.contest import Load
from benchmarks.machine import describe_machine
from benchmarks.options import json_option, service_options, services_given, window_options
from benchmarks.our_oracle import OurOracle
from benchmarks.our_side import OurSide
from benchmarks.peer.configuration import Program
from benchmarks.peer.installation import install
from benchmarks.peer.side import PeerSide
from benchmarks.peer_cases import CASES, Case
from benchmarks.peer_report import CaseResult
from benchmarks.presenting import TABLE_WIDTH_CHARACTERS, prefixed
from benchmarks.resting_side import RestingSide
from benchmarks.sides import Services
from benchmarks.surroundings import explained, once_each, surroundings
from devcluster.guard import Guard

NAMES = [case.name for case in CASES]


@click.command()
@click.option("--case", "names", multiple=True, type=click.Choice(NAMES), help="Only these.")
@window_options(warm_up_seconds=20.0)
@service_options
@click.option("--list", "only_list", is_flag=True, help="Show the cases and measure nothing.")
@json_option
def peer(
    names: tuple[str, ...],
    rounds: int,
    seconds: float,
    warm_up_seconds: float,
    zookeeper: str | None,
    thrift: str | None,
    only_list: bool,
    as_json: bool,
) -> None:
    """Measure begin and commit beside Apache Omid, in turn, on this machine.

    Omid's released jars are fetched once, with Maven or the Ivy inside PySpark. It runs as it ships and in the
    settings that suit a case best; the ratio is the one to the better of them.
    """
    cases = [case for case in CASES if case.name in names or not names]
    if only_list:
        Console(width=TABLE_WIDTH_CHARACTERS).print(_list_of(cases))
        return
    with explained():
        given = services_given(zookeeper, thrift)
        results = _measure(cases, given, rounds, seconds, warm_up_seconds)
        surroundings = describe_machine()
    Console(width=TABLE_WIDTH_CHARACTERS).print(peer_report.table(results))
    if as_json:
        click.echo(json.dumps({"cases": [result.to_fields() for result in results], "machine": surroundings}))


def _measure(
    cases: Sequence[Case],
    given: Services | None,
    rounds: int,
    seconds: float,
    warm_up_seconds: float,
) -> list[CaseResult]:
    progress = once_each()
    with_services = any(case.with_hbase for case in cases)
    with surroundings(given, progress, with_services=with_services) as around:
        program = install(around.directory, progress)
        return [
            result
            for case in cases
            for result in run_case(
                case,
                program,
                around.directory / case.name,
                around.guard,
                around.services if case.with_hbase else None,
                around.code,
                rounds=rounds,
                load=Load(case.in_flight, case.cells, case.connections, seconds, warm_up_seconds),
            )
        ]


def run_case(
    case: Case,
    program: Program,
    directory: Path,
    guard: Guard,
    services: Services | None,
    code: Code,
    *,
    rounds: int,
    load: Load,
) -> list[CaseResult]:
    """Ours through each of the case's fronts, and each of its configurations of the peer, in turn.

    Raises:
        SideError, DrillError, DevClusterError: a side cannot be started or measured.
    """
    directory.mkdir()
    oracles = {front: OurOracle(directory / front, guard, services, code=code) for front in case.fronts}
    ours = [RestingSide(OurSide(front, oracle, guard)) for front, oracle in oracles.items()]
    peers = [
        RestingSide(PeerSide(configuration, program, directory / f"peer-{number}", guard, services))
        for number, configuration in enumerate(case.configurations)
    ]
    tell = prefixed(case.name)
    series = contest.run([*ours, *peers], load, rounds=rounds, tell=tell)
    peer_series = tuple(series[len(ours) :])
    return [
        CaseResult(case, front, of_front, peer_series)
        for front, of_front in zip(case.fronts, series[: len(ours)], strict=True)
    ]


def _list_of(cases: Sequence[Case]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("case", "in flight", "connections", "commit table", "our front", "Omid as"):
        table.add_column(heading)
    for case in cases:
        table.add_row(
            case.name,
            f"{case.in_flight:,}",
            str(case.connections),
            "HBase" if case.with_hbase else "none",
            ", ".join(case.fronts),
            "; ".join(configuration.name for configuration in case.configurations),
        )
    return table
