"""Threads that are there while there is something for them to do, and calls that are made at once by means of them.

No pool of ``concurrent.futures``: a manager outlives forks and the main thread's end, and costs no thread before it
needs one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from store.forking import leave_at_fork

IDLE_SECONDS_MAX: Final = 5.0
"""A thread that has had nothing to do for so long ends; another one begins when there is something."""

_log = logging.getLogger(__name__)


class HelperThreads:
    """Up to ``threads_max`` daemon threads called ``name``. Thread-safe; a forked child has threads of its own."""

    def __init__(self, name: str, threads_max: int) -> None:
        self._name = name
        self._threads_max = threads_max
        self._start()
        leave_at_fork(self)

    def _start(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[Callable[[], object]] = deque()
        self._idle = 0
        self._threads = 0

    def submit(self, call: Callable[[], object], *, at_once: bool = False) -> bool:
        """Have a call made by one of them, in the order of these. False: it will not be made.

        That is where no thread can be had at all, and with ``at_once`` where all have something to do. What it raises
        is logged. The caller bounds what waits.
        """
        with self._changed:
            is_free = self._idle > len(self._waiting) or self._has_begun_another()
            if not is_free and (at_once or not self._threads):
                return False
            self._waiting.append(call)
            self._changed.notify()
        return True

    def leave_to_parent(self) -> None:
        """See ``Leaving``. What waits is the parent's."""
        self._start()

    def _has_begun_another(self) -> bool:
        if self._threads >= self._threads_max:
            return False
        try:
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
        except RuntimeError:  # none is left, or the interpreter ends
            return False
        self._threads += 1
        return True

    def _run(self) -> None:
        while (call := self._take()) is not None:
            try:
                call()
            except Exception:
                _log.exception("a call in the thread %s failed", self._name)
            del call  # with what it was to write: the next one may not come for a while

    def _take(self) -> Callable[[], object] | None:
        """What to do next; ``None``: this thread ends."""
        with self._changed:
            until_s = time.monotonic() + IDLE_SECONDS_MAX
            while not self._waiting:
                left_seconds = until_s - time.monotonic()
                if left_seconds <= 0:
                    self._threads -= 1
                    return None
                self._idle += 1
                self._changed.wait(left_seconds)
                self._idle -= 1
            return self._waiting.popleft()


def call_at_once(helpers: HelperThreads, calls: Sequence[Callable[[], object]]) -> None:
    """Make all the calls, as many at a time as threads are free, and the first in the caller's own.

    Returns, or raises the error of the first of them that failed, once all have ended.
    """
    errors: dict[int, BaseException] = {}
    ended = threading.Semaphore(0)

    def make(place: int) -> None:
        try:
            calls[place]()
        except Exception as error:  # an interrupt of the caller's thread waits for nothing
            errors[place] = error

    def make_elsewhere(place: int) -> None:
        try:
            calls[place]()
        except BaseException as error:  # whatever it is, it is the caller's
            errors[place] = error
        finally:
            ended.release()

    places = range(len(calls))
    elsewhere = [place for place in places[1:] if helpers.submit(partial(make_elsewhere, place), at_once=True)]
    for place in places:
        if place not in elsewhere:
            make(place)
    for _ in elsewhere:
        ended.acquire()
    if errors:
        error = errors[min(errors)]
        try:
            raise error
        finally:
            del error, errors  # which would hold themselves, and with them all that was to be written
