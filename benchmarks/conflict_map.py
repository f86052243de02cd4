"""What it costs to look a key up in a bounded map and to enter it, from empty to full and beyond; and the memory.

    python -m benchmarks.conflict_map [--entries 2000000] [--json]

*Ours*: the recency map that conflicts are decided by, asked and told a batch at a time. *Beside*: a Python dict that
does the same, as the oracle once had it: oldest first, 1/32 of it evicted when it is full. Both get the same keys, all
new. Counted is the process's own CPU time, which other processes on the machine disturb less.
"""

from __future__ import annotations

import json
import secrets
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import islice

import click
import numpy as np
from numpy.typing import NDArray

from benchmarks.rounds import Case
from tso.decisions.recency_map import RecencyMap

Keys = NDArray[np.uint64]

FILLS_PERCENT = (0, 25, 50, 75, 100)
LAPS_BEFORE_STEADY = 2
ROUNDS_PER_FILL_MAX = 200
"""A round enters this share of the entries, so that they all fit between two fills."""
BATCH_KEYS = 1_000
EVICTED_AT_ONCE = 1 / 32


class BoundedDict:
    """Key → timestamp, oldest first (a dict keeps the order in which keys were put)."""

    def __init__(self, entries_max: int) -> None:
        self._timestamps: dict[int, int] = {}
        self._entries_max = entries_max

    def __len__(self) -> int:
        return len(self._timestamps)

    def look_up_and_enter(self, keys: list[int], timestamp: int) -> None:
        """Ask for each key, then give it the timestamp."""
        timestamps = self._timestamps
        if len(timestamps) + len(keys) > self._entries_max:
            for key in list(islice(timestamps, max(len(keys), int(self._entries_max * EVICTED_AT_ONCE)))):
                del timestamps[key]
        for key in keys:
            timestamps.get(key, 0)
        for key in keys:
            timestamps.pop(key, None)
            timestamps[key] = timestamp


class Filling:
    """Both maps, on their way from empty to full."""

    def __init__(self, entries: int) -> None:
        self._random = np.random.default_rng(1)
        self._timestamp = 0
        self.entered = 0
        self.ours = RecencyMap(entries, secrets.randbits(64))
        self.beside = BoundedDict(entries)

    def _batches(self, count: int) -> Iterator[tuple[Keys, int]]:
        keys = self._random.integers(0, 2**64, count, dtype=np.uint64)
        self.entered += count
        for first in range(0, count, BATCH_KEYS):
            self._timestamp += 1
            yield keys[first : first + BATCH_KEYS], self._timestamp

    def enter(self, count: int) -> tuple[float, float]:
        """Look up and enter so many new keys in both; keys per second of CPU of each."""
        batches = list(self._batches(count))
        started = time.process_time()
        for keys, timestamp in batches:
            self.ours.look_up_all(keys)
            self.ours.enter_all(keys, timestamp)
        ours = time.process_time() - started
        lists = [(keys.tolist(), timestamp) for keys, timestamp in batches]
        started = time.process_time()
        for numbers, timestamp in lists:
            self.beside.look_up_and_enter(numbers, timestamp)
        return count / ours, count / (time.process_time() - started)


def measure(entries: int, *, rounds: int, progress: Callable[[str], None]) -> tuple[list[Case], RecencyMap]:
    """A case for each fill, and one in steady eviction; and the map at the end."""
    Filling(BATCH_KEYS).enter(2 * BATCH_KEYS)  # compiles
    filling = Filling(entries)
    count = max(1, entries // ROUNDS_PER_FILL_MAX)
    cases = []
    for percent in (*FILLS_PERCENT, 100 * (1 + LAPS_BEFORE_STEADY)):
        steady = percent > 100
        case = Case("steady eviction" if steady else f"{percent} % full", [], [])
        start = entries * percent // 100 - (rounds * count if percent == 100 else 0)
        if start > filling.entered:
            filling.enter(start - filling.entered)
        for _ in range(rounds):
            ours, beside = filling.enter(count)
            case.ours.append(ours)
            case.beside.append(beside)
        progress(case.line("keys"))
        cases.append(case)
    return cases, filling.ours


def dict_bytes_per_entry(entries: int) -> float:
    """Memory of the dict for each key that it remembers, the numbers in it included, in steady eviction."""
    random = np.random.default_rng(2)
    tracemalloc.start()
    try:
        bounded = BoundedDict(entries)
        for timestamp in range(1, 2 * entries // BATCH_KEYS):
            bounded.look_up_and_enter(
                random.integers(0, 2**64, BATCH_KEYS, dtype=np.uint64).tolist(), timestamp + 2**60
            )
        return tracemalloc.get_traced_memory()[0] / len(bounded)
    finally:
        tracemalloc.stop()


def summary(case: Case) -> dict[str, object]:
    """The case, with the nanoseconds that one key took on either side."""
    rates = case.summary()
    return {
        **rates,
        "ours_ns": round(1e9 / float(str(rates["ours_per_second"])), 1),
        "beside_ns": round(1e9 / float(str(rates["beside_per_second"])), 1),
    }


@click.command()
@click.option("--entries", default=2_000_000, show_default=True, type=click.IntRange(10_000, 100_000_000))
@click.option(
    "--rounds", default=9, show_default=True, type=click.IntRange(1, ROUNDS_PER_FILL_MAX // 8), help="For each fill."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object at the end instead of lines.")
def main(entries: int, rounds: int, as_json: bool) -> None:
    """Measure look-up + enter of a key, and memory, beside a Python dict."""
    cases, recency = measure(entries, rounds=rounds, progress=lambda line: click.echo(line, err=True))
    memory = {
        "ours_bytes_per_remembered_entry": round(recency.bytes_per_entry * entries / len(recency), 2),
        "beside_bytes_per_remembered_entry": round(dict_bytes_per_entry(entries), 2),
    }
    if as_json:
        click.echo(json.dumps({"entries": entries, "cases": [summary(case) for case in cases], **memory}))
        return
    for case in cases:
        took = summary(case)
        click.echo(f"{case.name}: {took['ours_ns']} / {took['beside_ns']} ns a key, ratio {took['ratio']}")
    click.echo("bytes for each remembered key: {} / {}".format(*memory.values()))


if __name__ == "__main__":
    main()
