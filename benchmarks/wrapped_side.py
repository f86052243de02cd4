"""What a side has in common that is another one with something added: all that is not added goes to the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from benchmarks.sides import Side, Window

Inner = TypeVar("Inner", bound=Side)


class WrappedSide(Generic[Inner]):
    """``side``, under its own name unless one is given."""

    def __init__(self, side: Inner, name: str | None = None) -> None:
        self.name = side.name if name is None else name
        self._side = side

    @property
    def configuration(self) -> Mapping[str, str | int | bool]:
        """See ``Side``."""
        return self._side.configuration

    def start(self) -> None:
        """See ``Side``."""
        self._side.start()

    def window(self, in_flight: int, cells: int, seconds: float, connections: int) -> Window:
        """See ``Side``."""
        return self._side.window(in_flight, cells, seconds, connections)

    def stop(self) -> None:
        """See ``Side``."""
        self._side.stop()
