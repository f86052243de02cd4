"""A forked child of a test: it does one thing, and tells what came of it."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

Result = TypeVar("Result")

CHILD_SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True)
class Child(Generic[Result]):
    """A child under way; ``output`` is where it tells its result."""

    process_id: int
    output: int

    def result(self) -> Result:
        """What the child's function returned; where it raised, an ``AssertionError`` with its traceback."""
        parts: list[bytes] = []
        while not parts or parts[-1]:
            readable, _, _ = select.select([self.output], [], [], CHILD_SECONDS_MAX)
            assert readable, f"the child has not come to its end within {CHILD_SECONDS_MAX} s"
            parts.append(os.read(self.output, 65_536))
        failure, result = pickle.loads(b"".join(parts))
        assert failure is None, f"in the child: {failure}"
        told: Result = result
        return told


@contextlib.contextmanager
def forked(function: Callable[[], Result]) -> Iterator[Child[Result]]:
    """Have ``function`` called in a child, which ends with the block at the latest."""
    output, told = os.pipe()
    with warnings.catch_warnings():
        # From Python 3.12 on forking beside threads warns; that these are not missed is what is tested.
        warnings.simplefilter("ignore", DeprecationWarning)
        process_id = os.fork()
    if process_id == 0:
        _tell(function, told)
    os.close(told)
    try:
        yield Child(process_id, output)
    finally:
        os.close(output)
        os.kill(process_id, signal.SIGKILL)
        os.waitpid(process_id, 0)


@contextlib.contextmanager
def entered_in_a_thread(block: contextlib.AbstractContextManager[object]) -> Iterator[None]:
    """Another thread is in ``block``, such as a lock, for as long as this one is in here."""
    entered, ended = threading.Event(), threading.Event()

    def stay() -> None:
        with block:
            entered.set()
            ended.wait(CHILD_SECONDS_MAX)

    thread = threading.Thread(target=stay)
    thread.start()
    try:
        assert entered.wait(CHILD_SECONDS_MAX)
        yield
    finally:
        ended.set()
        thread.join()


def in_child(function: Callable[[], Result]) -> Result:
    """What ``function`` returns in a forked child."""
    with forked(function) as child:
        return child.result()


def _tell(function: Callable[[], object], told: int) -> None:
    """Never returns: what is above it on the stack is the parent's."""
    try:
        try:
            answer = pickle.dumps((None, function()))
        except BaseException:
            answer = pickle.dumps((traceback.format_exc(), None))
        with os.fdopen(told, "wb") as pipe:
            pipe.write(answer)
    finally:
        os._exit(0)
