"""A process of its own for a Spark session, which calls what it is told to (``driver_calls``)."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

CALL_SECONDS_MAX = 240

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Driver:
    """Calls functions in that process, one after the other."""

    def __init__(self, processes: ProcessPoolExecutor) -> None:
        self._processes = processes

    def __call__(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        return self.begin(function, *arguments, **named).result(CALL_SECONDS_MAX)

    def begin(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Future[Result]:
        """Call, and do not wait."""
        return self._processes.submit(function, *arguments, **named)


@contextmanager
def driver(
    connect: Callable[Arguments, None], *arguments: Arguments.args, **named: Arguments.kwargs
) -> Iterator[Driver]:
    """``connect``: makes the session, before anything else is called."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
        made = Driver(processes)
        made(connect, *arguments, **named)
        yield made
