"""A bounded pool of connections that hands out no dead one and takes none back that may be out of step.

HappyBase's own pool gives out connections the gateway dropped long ago, and the call that meets one fails. The
invariants here: a connection idle beyond the age limit, or one the other side has hung up, is closed and not handed
out; one whose last request ended in anything but an answer is closed and not taken back; idle, leased and opening
connections together never exceed ``connections_max``; every wait has an end; no process uses a connection of another.

A signal's handler may raise between any two steps here: Ctrl-C in a notebook, which goes on with the same pool. So what
a caller takes is noted with the caller (``_Held``) before the pool counts it, and is given back wherever that ended;
and the lock is entered by ``with``, itself and not through a condition: nothing comes between taking it and the block.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from store.errors import StoreClosed, StoreUnavailable
from store.forking import leave_at_fork
from store.hbase.settings import PoolSettings


class Poolable(Protocol):
    """What the pool asks of a connection."""

    def is_usable(self) -> bool:
        """Whether the other side is still there, as far as can be seen without asking."""
        ...

    def close(self) -> None:
        """Hang up."""
        ...


C = TypeVar("C", bound=Poolable)

PREFERRED_WAIT_MS = 1_000
"""For how long a connection in use is waited for, where another would do: much longer than most requests take, and
much shorter than a slow scan keeps one."""


class _Held(Generic[C]):
    """What one lease has of the pool."""

    __slots__ = ("connection",)

    def __init__(self) -> None:
        self.connection: C | None = None


class ConnectionPool(Generic[C]):
    """Connections made by ``connect``, kept by ``settings``. In a forked child it is empty at first.

    ``answers`` are the exceptions after which a connection is still sound; ``monotonic`` gives seconds.
    """

    def __init__(
        self,
        connect: Callable[[], C],
        settings: PoolSettings,
        *,
        answers: tuple[type[BaseException], ...] = (),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect = connect
        self._settings = settings
        self._answers = answers
        self._monotonic = monotonic
        self._closed = False
        self._start()
        leave_at_fork(self)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._idle: list[tuple[C, float]] = []
        self._leased: set[C] = set()
        self._opening: set[_Held[C]] = set()

    @contextmanager
    def lease(self, *, fresh: bool = False, prefer: C | None = None) -> Iterator[C]:
        """A connection for the length of the block.

        ``fresh``: one that was opened for this lease. ``prefer``: this one, if it is still there (when it is in use,
        its user is waited for up to ``PREFERRED_WAIT_MS``), else any. Raises ``StoreUnavailable`` when the pool is
        closed or no connection comes free within ``lease_wait_ms``, and what ``connect`` raises.
        """
        held: _Held[C] = _Held()
        try:
            try:
                yield self._acquire(held, fresh, prefer)
            except self._answers:
                self._give_back(held)
                raise
            self._give_back(held)
        except BaseException:
            self._discard(held)
            raise

    @contextmanager
    def lease_if_idle(self, connection: C) -> Iterator[bool]:
        """Exactly this connection, without waiting; the block gets whether it has it.

        Not even the pool's lock is waited for: the garbage collector may call this in a thread that holds it.
        """
        held: _Held[C] = _Held()
        if not self._lock.acquire(blocking=False):
            yield False
            return
        try:
            found = self._take(held, connection)
        finally:
            self._lock.release()
        if not found:
            yield False
            return
        try:
            yield True
            self._give_back(held)
        except BaseException:
            self._discard(held)
            raise

    def close(self) -> None:
        """Close idle connections now, leased ones when they come back; later leases raise ``StoreClosed``."""
        with self._lock:
            self._closed = True
            while self._idle:
                self._idle.pop()[0].close()
            self._changed.notify_all()

    def leave_to_parent(self) -> None:
        """See ``Leaving``. The connections do the same for themselves, those too that are known to nobody else."""
        self._start()

    def _acquire(self, held: _Held[C], fresh: bool, prefer: C | None) -> C:
        now = self._monotonic()
        deadline, preferred_until = now + self._settings.lease_wait_ms / 1_000, now + PREFERRED_WAIT_MS / 1_000
        with self._lock:
            while True:
                if self._closed:
                    raise StoreClosed
                self._close_old()
                if prefer is not None and prefer in self._leased:
                    if not self._changed.wait(min(preferred_until, deadline) - self._monotonic()):
                        prefer = None
                    continue
                connection = None if fresh else self._take(held, prefer) or self._take(held, None)
                if connection is not None:
                    return connection
                if self._make_place():
                    break
                self._wait(deadline)
            self._opening.add(held)
        return self._open(held)

    def _wait(self, deadline: float) -> None:
        if not self._changed.wait(deadline - self._monotonic()):
            raise StoreUnavailable(
                f"all {self._settings.connections_max} connections to the HBase gateway were in use for "
                f"{self._settings.lease_wait_ms} ms: raise connections_max, or use fewer threads"
            )

    def _take(self, held: _Held[C], wanted: C | None) -> C | None:
        """Lease the connection ``wanted``, or the one used last; ``None`` when there is none such that is usable."""
        for place in range(len(self._idle) - 1, -1, -1):
            if wanted is None or self._idle[place][0] is wanted:
                connection, _ = self._idle.pop(place)
                if connection.is_usable():
                    held.connection = connection
                    self._leased.add(connection)
                    return connection
                connection.close()
        return None

    def _close_old(self) -> None:
        """Idle connections are in the order of their age, as each goes to the end when it comes back."""
        oldest = self._monotonic() - self._settings.idle_ms_max / 1_000
        while self._idle and self._idle[0][1] <= oldest:
            self._idle.pop(0)[0].close()

    def _make_place(self) -> bool:
        if len(self._leased) + len(self._opening) >= self._settings.connections_max:
            return False
        if len(self._leased) + len(self._opening) + len(self._idle) >= self._settings.connections_max:
            self._idle.pop(0)[0].close()
        return True

    def _open(self, held: _Held[C]) -> C:
        try:
            held.connection = self._connect()
            return held.connection
        finally:
            with self._lock:
                self._opening.discard(held)
                if held.connection is not None:
                    self._leased.add(held.connection)
                self._changed.notify_all()

    def _give_back(self, held: _Held[C]) -> None:
        connection = held.connection
        if connection is None:
            return
        with self._lock:
            is_ours = connection in self._leased  # not where this process was forked while it was leased
            self._leased.discard(connection)
            held.connection = None  # before it is anybody's
            if is_ours and not self._closed:
                self._idle.append((connection, self._monotonic()))
            else:
                connection.close()
            self._changed.notify_all()

    def _discard(self, held: _Held[C]) -> None:
        connection, held.connection = held.connection, None
        with self._lock:
            if connection is not None:
                self._leased.discard(connection)
            self._opening.discard(held)
            self._changed.notify_all()
            if connection is not None:
                connection.close()  # before anybody else opens one in its place
