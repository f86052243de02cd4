"""What a blocking iterator gives, taken by a task in pieces: one call in a thread for many rows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from functools import partial
from itertools import islice
from typing import Any, Protocol, TypeVar

Given = TypeVar("Given")


class Run(Protocol):
    """Makes a call that blocks; see ``BlockingCalls.run``."""

    def __call__(self, call: Callable[[], Any], /) -> Awaitable[Any]:
        """What the call returns."""


async def streamed(
    run: Run, begin: Callable[[], Generator[Given, None, None]], at_once: int
) -> AsyncGenerator[Given, None]:
    """All of an iterator, ``at_once`` of it taken at a time. Left early it is closed, in a thread like all else."""
    rows = await run(begin)
    try:
        while taken := await run(partial(_take, rows, at_once)):
            for each in taken:
                yield each
    finally:
        await run(rows.close)


def _take(rows: Generator[Given, None, None], at_once: int) -> list[Given]:
    return list(islice(rows, at_once))
