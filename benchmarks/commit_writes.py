"""What it costs to write commits: Thrift bytes from columns on the event loop, beside HappyBase's objects in threads.

    python -m benchmarks.commit_writes --thrift H:P [--json]

*Ours*: ``CommitRecorder`` over ``GatewayPutter``. *Beside*: the same commits by ``CellStore.put``, each call in
a thread of an executor, as an event loop has to make it. Both are driven by the same tasks of one event loop, one a
writer, and write to one commit table through one gateway, in turn. Each size of a batch and number of writers gives two
cases: commits a second, and commits a second *of this process's CPU time*, which an oracle needs for its decisions.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import click
import numpy as np
import numpy.typing as npt

from benchmarks.options import gateway_option
from benchmarks.rounds import Case, show
from commit_table import CommitTable, layout
from commit_table.recorder import CommitRecorder
from commit_table.timestamps import COUNTER_BITS, compose
from store import RowPut
from store.hbase import HBaseCellStore, PoolSettings
from store.hbase.putter import GatewayPutter

Starts = npt.NDArray[np.int64]
B = TypeVar("B")

BATCHES = (1, 64, 512, 2048)
WRITERS = (1, 2)
COMMITS_PER_MILLISECOND = 128
"""How many commits share a row: as at about a hundred thousand transactions a second."""
PREPARED_COMMITS_MAX = 2**17
"""Made before each measurement, and written in turn."""
FIRST_MILLISECOND = 1_764_000_000_000
EPOCH = compose(FIRST_MILLISECOND)


@dataclass(frozen=True, slots=True)
class Speed:
    """One measurement: commits a second of the clock on the wall, and of the CPU time of this process."""

    by_clock: float
    by_cpu: float


class Bench:
    """The commit table that both ways write to."""

    def __init__(self, thrift: str, seconds: float) -> None:
        self.store = HBaseCellStore(thrift, PoolSettings(connections_max=max(WRITERS)))
        self.table = f"benchmark_commits_{uuid.uuid4().hex[:8]}"
        self._thrift = thrift
        self._seconds = seconds
        self._millisecond = itertools.count(FIRST_MILLISECOND, PREPARED_COMMITS_MAX)
        CommitTable(self.store, self.table).create()

    def ours(self, batch: int, writers: int) -> Speed:
        """Columns, by the event loop itself."""

        async def run(starts: list[Starts]) -> float:
            putter = GatewayPutter(self._thrift, PoolSettings(connections_max=writers))
            recorder = CommitRecorder(putter, self.table)
            rate = await self._drive(lambda part: recorder.record(part, part, EPOCH), starts, writers)
            await putter.close()
            return rate

        return _timed(batch, partial(run, self._starts(batch)))

    def beside(self, batch: int, writers: int) -> Speed:
        """HappyBase, in threads."""

        async def run(starts: list[list[int]]) -> float:
            with ThreadPoolExecutor(writers) as threads:
                loop = asyncio.get_running_loop()

                def record(part: list[int]) -> Awaitable[None]:
                    return loop.run_in_executor(threads, self._put, part)

                return await self._drive(record, starts, writers)

        return _timed(batch, partial(run, [part.tolist() for part in self._starts(batch)]))

    def _put(self, starts: list[int]) -> None:
        """The cells of ``CommitRecorder``, made one by one."""
        rows: defaultdict[bytes, dict[bytes, bytes]] = defaultdict(dict)
        for start in starts:
            rows[layout.row_key(start)][layout.commit_column(start)] = layout.commit_value(start)
        self.store.put(self.table, [RowPut(row, columns) for row, columns in rows.items()], EPOCH)

    async def _drive(self, record: Callable[[B], Awaitable[None]], batches: list[B], writers: int) -> float:
        """Batches a second, each writer waiting for one before it begins the next."""
        parts = itertools.cycle(batches)
        started = time.monotonic()

        async def write() -> int:
            count = 0
            while time.monotonic() < started + self._seconds:
                await record(next(parts))
                count += 1
            return count

        counts = await asyncio.gather(*(write() for _ in range(writers)))
        return sum(counts) / (time.monotonic() - started)

    def _starts(self, batch: int) -> list[Starts]:
        """Start timestamps that no other measurement has, in batches; they serve as commit timestamps too."""
        numbers = np.arange(PREPARED_COMMITS_MAX, dtype=np.int64)
        milliseconds = next(self._millisecond) + numbers // COMMITS_PER_MILLISECOND
        starts = (milliseconds << COUNTER_BITS) + numbers % COMMITS_PER_MILLISECOND
        return [starts[first : first + batch] for first in range(0, starts.size, batch)]


def _timed(batch: int, run: Callable[[], Coroutine[None, None, float]]) -> Speed:
    """``run`` gives batches a second. What little it does before and after its loop counts as CPU time as well."""
    cpu_before, before = time.process_time(), time.monotonic()
    batches_per_second = asyncio.run(run())
    cpu_share = (time.process_time() - cpu_before) / (time.monotonic() - before)
    return Speed(batches_per_second * batch, batches_per_second * batch / cpu_share)


@contextlib.contextmanager
def opened(thrift: str, seconds: float) -> Iterator[Bench]:
    """A bench whose table is dropped at the end."""
    bench = Bench(thrift, seconds)
    try:
        yield bench
    finally:
        bench.store.drop_table(bench.table)
        bench.store.close()


def measure(bench: Bench, *, rounds: int, progress: Callable[[str], None]) -> list[Case]:
    """Both ways in turn, for each size of a batch and number of writers, after one of each that does not count."""
    cases: list[Case] = []
    for batch, writers in itertools.product(BATCHES, WRITERS):
        name = f"batches of {batch}, {writers} writer(s)"
        by_clock, by_cpu = Case(name, [], []), Case(f"{name}, of CPU time", [], [])
        bench.ours(batch, writers), bench.beside(batch, writers)
        for number in range(rounds):
            ours, beside = bench.ours(batch, writers), bench.beside(batch, writers)
            by_clock.ours.append(ours.by_clock)
            by_clock.beside.append(beside.by_clock)
            by_cpu.ours.append(ours.by_cpu)
            by_cpu.beside.append(beside.by_cpu)
            progress(
                f"{name}: round {number + 1} of {rounds}: {ours.by_clock:,.0f} / {beside.by_clock:,.0f} commits a "
                f"second, {1e6 / ours.by_cpu:,.2f} / {1e6 / beside.by_cpu:,.2f} µs of CPU each"
            )
        cases += [by_clock, by_cpu]
    return cases


@click.command()
@gateway_option
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1, 100), help="Alternating rounds.")
@click.option("--seconds", default=2.0, show_default=True, type=click.FloatRange(0.1, 60), help="Of one measurement.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object at the end instead of lines.")
def main(thrift: str, rounds: int, seconds: float, as_json: bool) -> None:
    """Measure the writing of commits, on a gateway that is up."""
    with opened(thrift, seconds) as bench:
        cases = measure(bench, rounds=rounds, progress=lambda line: click.echo(line, err=True))
    show(cases, "commits", as_json=as_json)


if __name__ == "__main__":
    main()
