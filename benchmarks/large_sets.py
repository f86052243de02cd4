"""What a commit of very many cells costs the oracle, beside those of others that it remembers.

    python -m benchmarks.large_sets [--cells 1000000] [--json]

A large write set is looked at part by part (``tso.decisions.large_write_sets``): each cell in the conflict map, and in
each large write set that was committed after the transaction's snapshot. *Ours*: the snapshot lies after all of these,
as where jobs follow each other. *Beside*: it lies before them, as of a job that ran while all of them committed.
Counted is the process's own CPU time, which other processes on the machine disturb less.
"""

from __future__ import annotations

import secrets
import time

import click
import numpy as np

from benchmarks.rounds import Case, show
from tso.decisions.cell_sets import SETS_MAX
from tso.decisions.large_write_sets import LargeWriteSets
from tso.decisions.recency_map import RecencyMap
from wire.large_commits import PART_CELLS_MAX

REMEMBERED = (0, 1, 3, SETS_MAX - 1)
"""Large write sets: one more is coming."""
BEFORE, AFTER = 1, 2
IDLE_MS_MAX = 1_000_000.0


class Commits:
    """The oracle's large write sets, beside an empty conflict map, as they grow in number."""

    def __init__(self, cells: int) -> None:
        self._cells = cells
        self._random = np.random.default_rng(1)
        self._written = RecencyMap(PART_CELLS_MAX, secrets.randbits(64))
        self._large = LargeWriteSets(SETS_MAX * cells, IDLE_MS_MAX, secrets.randbits(64))
        self._begun = 0
        self.remembered = 0

    def remember(self) -> None:
        """Have one more committed, of cells of its own."""
        self._take(BEFORE)
        self._large.commit(self._begun, AFTER)
        self.remembered += 1

    def take(self, snapshot: int) -> float:
        """Look at one that does not commit then; cells per second of CPU."""
        rate = self._take(snapshot)
        self._large.drop(self._begun)
        return rate

    def _take(self, snapshot: int) -> float:
        keys = self._random.integers(0, 2**64, self._cells, dtype=np.uint64)
        self._begun += 1
        coming = self._large.open(self._begun, keys.size, 0, snapshot, 0.0)
        assert coming is not None, "there is room for all of them"
        started = time.process_time()
        for first in range(0, keys.size, PART_CELLS_MAX):
            self._large.add(coming, keys[first : first + PART_CELLS_MAX], self._written.table, 0.0)
        return keys.size / (time.process_time() - started)


def measure(cells: int, rounds: int) -> list[Case]:
    """A case for each number of large write sets that are remembered."""
    commits = Commits(cells)
    commits.take(AFTER)  # compiles
    cases = []
    for remembered in REMEMBERED:
        while commits.remembered < remembered:
            commits.remember()
        case = Case(f"{remembered} remembered", [], [])
        for _ in range(rounds):
            case.ours.append(commits.take(AFTER))
            case.beside.append(commits.take(BEFORE))
        cases.append(case)
    return cases


@click.command()
@click.option("--cells", default=1_000_000, show_default=True, type=click.IntRange(10_000, 100_000_000))
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1, 100))
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def main(cells: int, rounds: int, as_json: bool) -> None:
    """Measure large commits by a snapshot after the others, beside one before them."""
    show(measure(cells, rounds), "cells", as_json=as_json)


if __name__ == "__main__":
    main()
