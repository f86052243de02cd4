"""``pythia bench spark``: what a Spark job pays for its transaction, beside the same job without one.

Invariant: the sides take turns within each round, back and forth, each on new tables and once the machine is at rest
(where it does not come to rest, that is told), so that none pays for what another left to be done. A ratio is formed
within a round, and the median over the rounds is what is told. A ratio of seconds beside plain says what a transaction
costs (1.0: nothing); one beside the job row by row says how much faster ours is.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import click
from pyspark.sql import DataFrame, SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks.cpu_time import await_rest
from benchmarks.machine import describe_machine
from benchmarks.options import json_option, service_options, services_given
from benchmarks.presenting import TABLE_WIDTH_CHARACTERS
from benchmarks.spark_jobs import PARTITIONS, REST_MS_MAX, Ours, Plain, RowByRow, Side, Taken, narrow_rows
from benchmarks.spark_surroundings import spark_and_manager
from benchmarks.surroundings import explained, once_each, surroundings
from client import TransactionManager
from client.spark import TableMapping
from demo.flights import read_flights
from demo.tables import arrow_table, mapping_of_flights
from devcluster import Step

DATA: Final = ("flights", "narrow")
LAYOUTS: Final = ("columns", "packed")
WRITTEN, DEFERRED, WITHOUT = "shadow cells written", "shadow cells deferred", "no shadow cells"
PLAIN, ROW_BY_ROW = "plain", "HappyBase row by row"
WRITE, READ, READ_AGAIN = "write", "read", "read again"
COSTS: Final = (
    *((WRITE, shadow_cells) for shadow_cells in (DEFERRED, WRITTEN, WITHOUT)),
    *((job, shadow_cells) for job in (READ, READ_AGAIN) for shadow_cells in (WRITTEN, WITHOUT)),
)
"""What is compared with plain: a job, and with which shadow cells."""
SECONDS_OF: Final[Mapping[str, Callable[[Taken], float]]] = {
    WRITE: lambda taken: taken.write,
    READ: lambda taken: taken.read,
    READ_AGAIN: lambda taken: taken.read_again,
}

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """Of one DataFrame in one layout: the seconds of each side, by its name, one for each round."""

    data: str
    layout: str
    rows: int
    taken: dict[str, list[Taken]]

    def cases(self) -> Iterator[dict[str, object]]:
        """What is compared: rows a second of ours and of what stands beside, and the ratio of seconds or of speeds."""
        for job, ours in COSTS:
            yield self._case(job, ours, PLAIN, cost=True)
        if ROW_BY_ROW in self.taken:
            for job in SECONDS_OF:
                yield self._case(job, WRITTEN, ROW_BY_ROW, cost=False)

    def _case(self, job: str, ours: str, beside: str, *, cost: bool) -> dict[str, object]:
        seconds = SECONDS_OF[job]
        pairs = [(seconds(a), seconds(b)) for a, b in zip(self.taken[ours], self.taken[beside], strict=True)]
        ratios = [mine / other if cost else other / mine for mine, other in pairs]
        return {
            "name": f"{self.data}, {self.layout}: {job}, {ours}, beside {beside}",
            "ours": round(self.rows / statistics.median(mine for mine, _ in pairs), 1),
            "peer": round(self.rows / statistics.median(other for _, other in pairs), 1),
            "ratio": round(statistics.median(ratios), 3),
            "ratio_is": "seconds of ours / seconds beside" if cost else "times as fast",
            "ratio_min": round(min(ratios), 3),
            "ratio_max": round(max(ratios), 3),
            "rounds": len(pairs),
            "rows": self.rows,
        }


@click.command()
@click.option("--data", "data", multiple=True, type=click.Choice(DATA), help="Only these DataFrames.")
@click.option("--layout", "layouts", multiple=True, type=click.Choice(LAYOUTS), help="Only these layouts of a table.")
@click.option(
    "--rounds", default=5, show_default=True, type=click.IntRange(1, 100), help="After one that is not counted."
)
@click.option("--months", default=12, show_default=True, type=click.IntRange(1, 12), help="Of the flights.")
@click.option(
    "--narrow-rows", "narrow", default=2_000_000, show_default=True, type=click.IntRange(1_000, 100_000_000),
    help="Rows that are generated.",
)  # fmt: skip
@service_options
@json_option
def spark(
    data: tuple[str, ...],
    layouts: tuple[str, ...],
    rounds: int,
    months: int,
    narrow: int,
    zookeeper: str | None,
    thrift: str | None,
    as_json: bool,
) -> None:
    """Measure transactional Spark jobs beside the same jobs without transactions.

    Flights (19 columns) and generated narrow rows, in tables with a cell for each column and in packed ones: written
    in one transaction, with the shadow cells written before the job returns, deferred or left out, and read twice, at
    one snapshot each time; beside a job that writes and reads the same bytes without a transaction, and one with
    HappyBase, row by row.
    """
    with explained():
        given, progress = services_given(zookeeper, thrift), once_each()
        with (
            surroundings(given, progress, with_services=True) as around,
            spark_and_manager(around) as (session, manager),
        ):
            measured = [
                _measure(session, manager, name, layout, frame, mapping, rounds, lambda text: progress(Step(text)))
                for name, frame, mapping in _frames(session, data or DATA, months, narrow)
                for layout in layouts or LAYOUTS
            ]
        machine = describe_machine()
    cases = [case for each in measured for case in each.cases()]
    Console(width=TABLE_WIDTH_CHARACTERS).print(_table(cases))
    if as_json:
        click.echo(json.dumps({"cases": cases, "machine": machine}))


def _frames(
    session: SparkSession, names: Sequence[str], months: int, narrow: int
) -> Iterator[tuple[str, DataFrame, TableMapping]]:
    """Each DataFrame, held by Spark, and how it lies in a table."""
    if "flights" in names:
        flights = read_flights(months)
        mapping = mapping_of_flights("bench_flights", flights)
        yield "flights", session.createDataFrame(arrow_table(mapping, flights)).repartition(PARTITIONS), mapping
    if "narrow" in names:
        frame = narrow_rows(session, narrow)
        yield "narrow", frame, TableMapping.from_schema("bench_narrow", frame.schema, row_key=["id"])


def _measure(
    session: SparkSession,
    manager: TransactionManager,
    name: str,
    layout: str,
    frame: DataFrame,
    mapping: TableMapping,
    rounds: int,
    tell: Tell,
) -> Measured:
    mapping = TableMapping(mapping.table, mapping.row_key, mapping.columns, packed=layout == "packed")
    held = frame.persist()
    rows = held.count()
    sides: list[Side] = [
        Ours(DEFERRED, session, manager, mapping, "deferred"),
        Ours(WRITTEN, session, manager, mapping, "written"),
        Ours(WITHOUT, session, manager, mapping, "none"),
        Plain(PLAIN, session, manager, mapping),
    ]
    if layout == "columns":
        sides.append(RowByRow(ROW_BY_ROW, session, manager.settings, manager, mapping))
    taken: dict[str, list[Taken]] = {side.name: [] for side in sides}
    for number in range(rounds + 1):
        for side in sides if number % 2 else reversed(sides):
            if not await_rest(REST_MS_MAX):
                tell(f"{side.name}, round {number}: the machine did not come to rest in {REST_MS_MAX:,} ms")
            seconds = side.run(held)
            speeds = (rows / each for each in (seconds.write, seconds.read, seconds.read_again))
            told = "write {:,.0f}, read {:,.0f}, read again {:,.0f} rows a second".format(*speeds)
            tell(f"{name}, {layout}, round {number} of {rounds}, {side.name}: {told}")
            if number:  # the first one loads code and starts workers
                taken[side.name].append(seconds)
    held.unpersist()
    return Measured(name, layout, rows, taken)


def _table(cases: Sequence[dict[str, object]]) -> Table:
    table = Table(title="Spark jobs in a transaction, beside the same jobs without one, in the same run")
    for heading in ("case", "ours, rows/s", "beside, rows/s", "ratio", "which is"):
        table.add_column(heading, justify="left" if heading in ("case", "which is") else "right")
    for case in cases:
        ratio = f"{case['ratio']} ({case['ratio_min']}–{case['ratio_max']})"
        table.add_row(str(case["name"]), f"{case['ours']:,}", f"{case['peer']:,}", ratio, str(case["ratio_is"]))
    return table
