"""The demo from its first process to its last: what happens in which order, and what has to be true at the end.

Invariant: it returns only if every comparison held (or, with split transactions, if the reader caught the difference).
"""

from __future__ import annotations

import calendar
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd
from pyspark.errors import PySparkException
from rich.console import Console

from client import TransactionAborted, TransactionManager
from demo import services
from demo.children import Message, Talker
from demo.display import Bar, Display
from demo.errors import ComparisonFailed, DemoError
from demo.failovers import Failovers, failing_over
from demo.flights import LATE_CARRIER, LATE_DAY, is_late, read_flights
from demo.kills import FailoverReport, Kill, aborted
from demo.load import Loader, MonthLoaded, spark_session
from demo.oracles import TO_BE_KILLED, UNDISTURBED, Oracles
from demo.report import flights_tables, phases_table
from demo.services import Installation
from demo.summaries import SUMMARIES, Totals, counted, differences, shown, summarise
from demo.tally import LateTally, ReaderTally
from devcluster.guard import Guard
from devcluster.java import find_java

LOG_FORMAT: Final = "%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"
CHECK_SECONDS_MAX: Final = 300.0
LATE_SECONDS_MAX: Final = 60.0
SPARK_ERROR_CHARACTERS_SHOWN: Final = 2_000


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do: the options of the command line."""

    directory: Path
    months: int
    split: bool = False
    kill_primary: bool = False
    zookeeper: str | None = None
    thrift: str | None = None
    keep: bool = False


def run(plan: Plan) -> None:
    """Run the demo. Raises ``DemoError`` and the errors of the services, each with a text for a person."""
    find_java()
    logs = plan.directory / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(filename=logs / "demo.log", filemode="w", level=logging.INFO, format=LOG_FORMAT)
    with ExitStack() as stack:
        display = stack.enter_context(Display(Console()))
        display.line(f"logs are in {logs}")
        guard = None if plan.keep else stack.enter_context(Guard())
        installation = stack.enter_context(_installation(plan, display, guard))
        oracles = _serve(plan, stack, display, installation, logs, guard)
        with display.phase("Spark"):
            spark = stack.enter_context(spark_session(logs / "spark.log"))
        manager = stack.enter_context(TransactionManager.connect(installation.settings))
        loader = Loader(spark, manager, installation.names)
        demo = Demo(plan, display, installation, oracles, manager, loader, logs)
        try:
            demo.run_split() if plan.split else demo.run()
        except PySparkException as error:
            raise DemoError(f"Spark: {str(error)[:SPARK_ERROR_CHARACTERS_SHOWN]}\nMore is in {logs}") from error


@contextmanager
def _installation(plan: Plan, display: Display, guard: Guard | None) -> Iterator[Installation]:
    with ExitStack() as stack:
        if plan.zookeeper and plan.thrift:
            given = services.given_cluster(plan.zookeeper, plan.thrift, keep=plan.keep)
            yield stack.enter_context(given)
            return
        steps = stack.enter_context(display.steps())
        with display.phase("ZooKeeper, HBase and its Thrift gateway"):
            installation = stack.enter_context(
                services.own_cluster(_cluster_directory(plan), progress=steps, guard=guard)
            )
            steps.done()
        yield installation


def _serve(
    plan: Plan, stack: ExitStack, display: Display, installation: Installation, logs: Path, guard: Guard | None
) -> Oracles:
    options = TO_BE_KILLED if plan.kill_primary else UNDISTURBED
    with display.phase("a primary and a standby oracle"):
        oracles = stack.enter_context(services.oracles(installation.settings, logs, options, guard=guard))
    if plan.keep:
        stack.callback(lambda: display.line(_kept(plan, installation, oracles.pids())))
    return oracles


def _kept(plan: Plan, installation: Installation, oracles: list[int]) -> str:
    settings = installation.settings
    tables = f"{installation.names.prefix}*" if plan.zookeeper else "flights, by_carrier, by_route, by_day and others"
    cluster = "" if plan.zookeeper else f" && pythia dev down --wipe --directory {_cluster_directory(plan)}"
    return (
        f"Kept: --zookeeper {settings.zookeeper} --thrift {settings.thrift} --root {settings.root}, tables {tables}.\n"
        f"To end everything: kill {' '.join(map(str, oracles))}{cluster}"
    )


def _cluster_directory(plan: Plan) -> Path:
    return plan.directory / "cluster"


class Demo:
    """The part of the demo that runs once all services are there."""

    def __init__(
        self,
        plan: Plan,
        display: Display,
        installation: Installation,
        oracles: Oracles,
        manager: TransactionManager,
        loader: Loader,
        logs: Path,
    ) -> None:
        self._plan = plan
        self._display = display
        self._installation = installation
        self._oracles = oracles
        self._manager = manager
        self._loader = loader
        self._logs = logs
        self._flights = read_flights(plan.months)
        self._reader = ReaderTally()
        self._late = LateTally()

    def run(self) -> None:
        """Load, with a second writer; compare everything at the end."""
        with ExitStack() as stack:
            failovers = stack.enter_context(self._failing_over()) if self._plan.kill_primary else None
            self._load_reference()
            self._loader.create_tables(self._flights)
            reader = stack.enter_context(self._reading())
            writer = stack.enter_context(self._talking("late_writer", self._late.take))
            with self._display.phase("flights and summaries, month by month") as phase:
                phase.rows = len(self._flights)
                self._load_months(writer, failovers)
            failover_report = failovers.finish() if failovers else None
            summaries = self._compare()
            self._finish_reading(reader)
        self._report(summaries, failover_report)

    def run_split(self) -> None:
        """Load in the wrong way, until the reader has caught it."""
        self._loader.create_tables(self._flights)
        with self._reading() as reader:
            for month, flights in self._months(self._flights):
                self._loader.load_month_split(
                    month,
                    flights,
                    lambda timestamp: reader.wait_until(
                        lambda: self._reader.settled_at(timestamp), "check a newer snapshot", CHECK_SECONDS_MAX
                    ),
                )
                if self._reader.differences:
                    self._display.line(
                        f"CAUGHT, as it had to be: with flights and summaries in two transactions the reader's check "
                        f"{self._reader.full + self._reader.quick} (a {self._reader.kind} one) found "
                        f"{len(self._reader.differences):,} differences in one snapshot:\n"
                        f"{shown(self._reader.differences)}"
                    )
                    return
        raise ComparisonFailed(
            f"flights and summaries were written in two transactions, and the reader did not notice: {self._reader}"
        )

    def _load_reference(self) -> None:
        with self._display.phase("airlines, airports, planes and weather, in one transaction") as phase:
            phase.rows = self._loader.load_reference()

    def _failing_over(self) -> AbstractContextManager[Failovers]:
        return failing_over(self._manager, self._oracles, self._installation.names, self._plan.months)

    def _load_months(self, writer: Talker, failovers: Failovers | None) -> None:
        on_time = self._flights[~is_late(self._flights)]
        with self._display.bar("months", self._plan.months) as bar:
            for month, flights in self._months(on_time):
                bar.set(f"{calendar.month_name[month]}: {len(flights):,} flights", month - 1, self._plan.months)
                if failovers:
                    loaded, kill = self._load_month_failing_over(month, flights, writer, failovers)
                else:
                    loaded, kill = self._load_month(month, flights, writer), None
                self._reader.refuse_differences()
                self._late.refuse_missing_conflicts(month)
                self._display.line(self._month_line(loaded))
                if kill:
                    self._display.line(f"    {kill}")

    def _load_month_failing_over(
        self, month: int, flights: pd.DataFrame, writer: Talker, failovers: Failovers
    ) -> tuple[MonthLoaded, Kill | None]:
        """Load a month of whose transaction the primary may be killed; a standby is there again at the end."""
        failovers.before_month(month)
        try:
            loaded = self._load_month(
                month,
                flights,
                writer,
                begun=lambda start_timestamp: failovers.month_begun(month, start_timestamp),
                written=failovers.before_commit,
            )
        except TransactionAborted as error:
            raise aborted(f"the transaction of {calendar.month_name[month]}", error) from error
        return loaded, failovers.month_loaded()

    def _load_month(
        self,
        month: int,
        flights: pd.DataFrame,
        writer: Talker,
        *,
        begun: Callable[[int], None] = lambda _: None,
        written: Callable[[], None] = lambda: None,
    ) -> MonthLoaded:
        """Load a month while the late writer holds a transaction open over it, which then has to be run again."""

        def before_commit() -> None:
            written()
            writer.wait_until(lambda: self._late.waits(month), "write its report", LATE_SECONDS_MAX)

        writer.send({"month": month})
        loaded = self._loader.load_month(month, flights, begun, before_commit)
        writer.send({"committed": month})
        writer.wait_until(lambda: month in self._late.reported, "report the late flights", LATE_SECONDS_MAX)
        return loaded

    def _month_line(self, loaded: MonthLoaded) -> str:
        return (
            f"  {calendar.month_name[loaded.month]}: {loaded.flights:,} flights in {loaded.seconds:.1f} s, "
            f"{loaded.commit_seconds:.1f} s of it the commit; reader: {self._reader}"
        )

    def _compare(self) -> dict[str, Totals]:
        """Every row of every summary, read by Spark in one snapshot, with pandas' own of the package's flights."""
        with self._display.phase("comparison with pandas") as phase:
            found = self._loader.summaries(self._manager.snapshot())
            for summary in SUMMARIES:
                expected = summarise(self._flights, summary)
                unequal = differences(summary, expected, found[summary.name])
                if unequal:
                    raise ComparisonFailed(
                        f"{len(unequal):,} rows of {summary.name} are not what pandas computes from the package:\n"
                        f"{shown(unequal)}"
                    )
                phase.rows += len(expected)
        return found

    @contextmanager
    def _reading(self) -> Iterator[Talker]:
        with self._display.bar("reader") as bar, self._talking("reader", lambda said: self._read(said, bar)) as reader:
            yield reader

    def _read(self, message: Message, bar: Bar) -> None:
        self._reader.take(message)
        full, quick = self._reader.full, self._reader.quick
        bar.set(f"reader: {full:,} full and {quick:,} quick checks", full + quick)

    def _finish_reading(self, reader: Talker) -> None:
        with self._display.phase("the reader's last check"):
            reader.send({"finish": True})
            reader.wait_until(lambda: self._reader.finished, "do its last check", CHECK_SECONDS_MAX)
        self._reader.refuse_differences()
        if self._reader.flights != len(self._flights):
            raise ComparisonFailed(
                f"the reader's last snapshot has {self._reader.flights:,} flights, the package {len(self._flights):,}"
            )

    @contextmanager
    def _talking(self, module: str, take: Callable[[Message], None]) -> Iterator[Talker]:
        arguments = [self._installation.settings.to_json(), self._installation.names.prefix]
        name = module.replace("_", " ")
        talker = Talker(f"the {name}", f"demo.{module}", arguments, self._logs / f"{module}.log", take)
        try:
            yield talker
        finally:
            talker.stop()

    def _months(self, flights: pd.DataFrame) -> Iterator[tuple[int, pd.DataFrame]]:
        for month in range(1, self._plan.months + 1):
            yield month, flights[flights["month"] == month]

    def _report(self, summaries: dict[str, Totals], failovers: FailoverReport | None) -> None:
        snapshot = self._manager.snapshot()
        names = [self._loader.names_of(table, snapshot) for table in ("airlines", "airports")]
        for table in flights_tables(summaries, *names):
            self._display.show(table)
        self._display.show(phases_table(self._display.phases))
        for line in self._story():
            self._display.line(line)
        if failovers:
            for line in failovers.lines(self._plan.months, len(self._late.reported), self._late.conflicts()):
                self._display.line(line)

    def _story(self) -> list[str]:
        late, months = self._late, self._plan.months
        return [
            f"{1 + months + len(late.reported)} transactions committed: the small tables and "
            f"{counted(months, 'month')} by Spark, {counted(len(late.reported), 'late report')} by a second writer.",
            f"Reader, in a process of its own: {self._reader}. It met "
            f"{len(self._reader.states)} of the {1 + months + len(late.reported)} states that the tables went through.",
            f"Second writer: {counted(late.flights, 'flight')} ({LATE_CARRIER}, each {LATE_DAY}th), reported while "
            f"their month was loaded: {counted(late.conflicts(), 'conflict')}, each run again.",
            f"  Its report for January: {late.story(1)}.",
            f"Every row of {len(SUMMARIES)} summaries equals what pandas computes from the package.",
        ]
