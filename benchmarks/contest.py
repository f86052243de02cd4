"""Sides measured in turn, window by window, so that a machine that slows down slows all of them.

A ratio is formed within each round; the median over the rounds is what may be quoted. Sides may differ in what they
are, or one side may take several turns that differ in their load. Invariant: between the first start and the last stop
no side but the one in turn has any work.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.sides import Side, SideError, Window

RISING_FACTOR = 1.1
WARM_UP_WINDOWS_MAX = 6
"""Short ones, after the long one."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Load:
    """What every window is asked for. ``warm_up_seconds``: the length of each side's first window, for warming up."""

    in_flight: int
    cells: int
    connections: int
    seconds: float
    warm_up_seconds: float


@dataclass(frozen=True, slots=True)
class Turn:
    """What one window of each round is: a side under a load, and what to call that."""

    name: str
    side: Side
    load: Load


Measure = Callable[[Window], float]


def per_second(window: Window) -> float:
    """Committed transactions a second."""
    return window.per_second


@dataclass(frozen=True, slots=True)
class Series:
    """The windows of one turn, in the order of the rounds; ``side`` is its name."""

    side: str
    configuration: dict[str, str | int | bool]
    windows: tuple[Window, ...]

    @property
    def per_second(self) -> float:
        """Median over the rounds of transactions a second."""
        return self.median(per_second)

    def median(self, measure: Measure) -> float:
        """Over the rounds."""
        return statistics.median(map(measure, self.windows))


def schedule(rounds: int, turns: int) -> Iterator[tuple[int, int]]:
    """The order of the windows, as (round, turn): in each round every turn once."""
    return ((number, turn) for number in range(rounds) for turn in range(turns))


def ratios(ours: Series, beside: Series, measure: Measure = per_second) -> list[float]:
    """Ours / beside, for each round."""
    return [measure(mine) / measure(other) for mine, other in zip(ours.windows, beside.windows, strict=True)]


def better(series: Sequence[Series]) -> int:
    """Which of them has the highest median."""
    return max(range(len(series)), key=lambda index: series[index].per_second)


def run(sides: Sequence[Side], load: Load, *, rounds: int, tell: Tell) -> list[Series]:
    """All sides under the same load; see ``run_turns``."""
    return run_turns([Turn(side.name, side, load) for side in sides], rounds=rounds, tell=tell)


def run_turns(turns: Sequence[Turn], *, rounds: int, tell: Tell) -> list[Series]:
    """Start all sides, warm each turn up, measure them in turn, and stop them, whatever happens.

    Raises:
        SideError: a side cannot be started or measured.
    """
    windows: list[list[Window]] = [[] for _ in turns]
    with ExitStack() as stack:
        for side in {id(turn.side): turn.side for turn in turns}.values():
            tell(f"starting {side.name}")
            stack.callback(side.stop)
            side.start()
        for turn in turns:
            tell(f"warming up {turn.name}")
            rates = _warm_up(turn)
            tell(f"warm after {len(rates)} windows: {turn.name}: {rates[-1]:,.0f} transactions a second")
        for number, index in schedule(rounds, len(turns)):
            window = _measure(turns[index])
            windows[index].append(window)
            tell(f"round {number + 1} of {rounds}: {turns[index].name}: {window.per_second:,.0f} transactions a second")
    return [
        Series(turn.name, dict(turn.side.configuration), tuple(measured))
        for turn, measured in zip(turns, windows, strict=True)
    ]


def still_rising(rates: Sequence[float]) -> bool:
    """Whether the last window was clearly faster than all before it: on a busy machine compilers are late."""
    return len(rates) < 2 or rates[-1] > RISING_FACTOR * max(rates[:-1])


def _warm_up(turn: Turn) -> list[float]:
    """A long window, and short ones until they no longer get faster: a side measured cold would flatter the other."""
    rates = [_window(turn, turn.load.warm_up_seconds).per_second]
    while still_rising(rates) and len(rates) <= WARM_UP_WINDOWS_MAX:
        rates.append(_window(turn, turn.load.seconds).per_second)
    return rates


def _window(turn: Turn, seconds: float) -> Window:
    return turn.side.window(turn.load.in_flight, turn.load.cells, seconds, turn.load.connections)


def _measure(turn: Turn) -> Window:
    window = _window(turn, turn.load.seconds)
    if not window.transactions:
        what = f"committed nothing within {turn.load.seconds:g} s ({window.aborted} aborts)"
        raise SideError(f"{turn.name} {what}: measure longer windows")
    return window
