"""What a blocking iterator gives, taken by a task in pieces: one call in a thread for many rows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from functools import partial
from itertools import islice
from typing import TypeVar

from client.asyncio_front.blocking_calls import BlockingCalls

Given = TypeVar("Given")


async def streamed(
    calls: BlockingCalls,
    begin: Callable[[], Generator[Given, None, None]],
    at_once: int,
    turn: asyncio.Lock | None = None,
) -> AsyncGenerator[Given, None]:
    """All of an iterator, ``at_once`` of it taken at a time. Left early it is closed in a thread, like all else."""
    rows: Generator[Given, None, None] | None = await calls.run(begin, turn)
    try:
        while rows is not None:
            taken = await calls.run(partial(_take, rows, at_once), turn)
            if len(taken) < at_once:
                rows = None  # it has come to its end
            for each in taken:
                yield each
    finally:
        if rows is not None:
            calls.clean_up(rows.close)


def _take(rows: Generator[Given, None, None], at_once: int) -> list[Given]:
    return list(islice(rows, at_once))
