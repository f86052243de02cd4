"""What is opened by waiting for it: ``await manager.transaction()``, or ``async with manager.transaction() as tx``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from client.errors import InvalidRequest


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
    """Opens nothing before it is waited for, which it is once; later ``InvalidRequest`` is raised."""

    def __init__(self, opened: Callable[[], Awaitable[Opened]]) -> None:
        self._open: Callable[[], Awaitable[Opened]] | None = opened
        self._opened: Opened | None = None

    def __await__(self) -> Generator[Any, None, Opened]:
        return self._taken()().__await__()

    async def __aenter__(self) -> Opened:
        self._opened = await self._taken()()
        return await self._opened.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._opened is not None
        await self._opened.__aexit__(kind, error, traceback)

    def _taken(self) -> Callable[[], Awaitable[Opened]]:
        opened, self._open = self._open, None
        if opened is None:
            raise InvalidRequest("this was waited for before: ask for another one")
        return opened
