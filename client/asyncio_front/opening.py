"""What is opened by waiting for it: ``await manager.transaction()``, or ``async with manager.transaction() as tx``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar


class Block(Protocol):
    """What can be used in ``async with``."""

    async def __aenter__(self) -> Self:
        """Itself."""

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """The block has ended."""


Opened = TypeVar("Opened", bound=Block)


class Opening(Generic[Opened]):
    """Opens nothing before it is waited for; to be waited for once."""

    def __init__(self, opened: Callable[[], Awaitable[Opened]]) -> None:
        self._open = opened
        self._opened: Opened | None = None

    def __await__(self) -> Generator[Any, None, Opened]:
        return self._open().__await__()

    async def __aenter__(self) -> Opened:
        self._opened = await self._open()
        return await self._opened.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._opened is not None
        await self._opened.__aexit__(kind, error, traceback)
