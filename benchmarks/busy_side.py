"""A side that is measured while something else keeps the same oracle busy.

Invariant: what is beside it begins before the window does, and is waited for after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.load_process import Answer, LoadProcess
from benchmarks.sides import Side, Window
from benchmarks.wrapped_side import WrappedSide

ANSWER_SECONDS_MAX = 300.0
"""Beyond the length of a window; a large commit takes its time."""


class BusySide(WrappedSide[Side]):
    """``line``: what tells the other process to begin, for a window of that many seconds. ``answers``: what came.

    ``make`` starts that process; it is called when ``side`` has started.
    """

    def __init__(self, side: Side, what: str, make: Callable[[], LoadProcess], line: Callable[[float], str]) -> None:
        super().__init__(side, f"{side.name}, beside {what}")
        self.answers: list[Answer] = []
        self._what = what
        self._make = make
        self._line = line
        self._other: LoadProcess | None = None

    @property
    def configuration(self) -> Mapping[str, str | int | bool]:
        """See ``Side``."""
        return {**super().configuration, "beside": self._what}

    def start(self) -> None:
        """See ``Side``."""
        super().start()
        self._other = self._make()

    def window(self, in_flight: int, cells: int, seconds: float, connections: int) -> Window:
        """See ``Side``. The CPU of the client is that of ``side`` alone; that of the other is in ``answers``."""
        assert self._other is not None, "start comes first"
        self._other.ask(self._line(seconds))
        window = super().window(in_flight, cells, seconds, connections)
        self.answers.append(self._other.answer(seconds + ANSWER_SECONDS_MAX))
        return window

    def stop(self) -> None:
        """See ``Side``."""
        if self._other is not None:
            self._other.end()
            self._other = None
        super().stop()
