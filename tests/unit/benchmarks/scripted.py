"""Sides that do as they are told, and note what was asked of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.contest import Series
from benchmarks.sides import Latency, Window
from drills.children import Child

Call = tuple[str, str, float]


def window(transactions: int, *, begin_us: float | None = 100.0, seconds: float = 1.0) -> Window:
    begin = None if begin_us is None else Latency(begin_us, 2 * begin_us)
    return Window(
        transactions=transactions,
        aborted=1,
        seconds=seconds,
        whole=Latency(200.0, 400.0),
        begin=begin,
        commit=begin,
        client_cpu_seconds=0.5 * seconds,
        oracle_cpu_seconds=0.25 * seconds,
    )


def series(side: str, *rates: int, begin_us: float | None = 100.0) -> Series:
    return Series(side, {"name": side}, tuple(window(rate, begin_us=begin_us) for rate in rates))


class Scripted:
    """Its windows have the given numbers of transactions, the first of them for the warm-up."""

    def __init__(self, name: str, calls: list[Call], *transactions: int, fails: type[BaseException] | None = None):
        self.name = name
        self.configuration: Mapping[str, str | int | bool] = {"name": name}
        self._calls = calls
        self._transactions: Iterator[int] = iter(transactions)
        self._fails = fails

    @property
    def children(self) -> Sequence[Child]:
        return ()

    def start(self) -> None:
        self._calls.append((self.name, "start", 0.0))
        if self._fails is not None:
            raise self._fails("told to")

    def window(self, in_flight: int, cells: int, seconds: float, connections: int) -> Window:
        self._calls.append((self.name, f"window {in_flight} {cells} {connections}", seconds))
        return window(next(self._transactions), seconds=seconds)

    def stop(self) -> None:
        self._calls.append((self.name, "stop", 0.0))
