"""Stand-ins for ``threading``: the same promises, over virtual threads and virtual time.

Only what the project uses, and a clear error for anything else, so that a new use cannot pass by unnoticed and wait on
the real thing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.simulation.kernel import Kernel, VirtualThread, WaitQueue


class Lock:
    """``threading.Lock``."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._held = False
        self._waiting = WaitQueue(kernel)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        self._kernel.point("lock")
        if self._held:
            limit = (None if timeout < 0 else timeout) if blocking else 0.0
            if not self._waiting.wait_for(lambda: not self._held, limit):
                return False
        self._held = True
        return True

    def release(self) -> None:
        if not self._held:
            raise RuntimeError("release unlocked lock")
        self._held = False
        self._waiting.wake_one()

    def locked(self) -> bool:
        return self._held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()


class RLock:
    """``threading.RLock``."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._lock = Lock(kernel)
        self._owner: VirtualThread | None = None
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self._depth == 0 or self._owner is not self._kernel.current:
            if not self._lock.acquire(blocking, timeout):
                return False
            self._owner = self._kernel.current
        self._depth += 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._owner = None
            self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()


class Event:
    """``threading.Event``. ``set`` may also be called by what is outside of every thread, such as a watch."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._is_set = False
        self._waiting = WaitQueue(kernel)

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        self._waiting.wake_all()

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        self._kernel.point("wait")
        return self._waiting.wait_for(lambda: self._is_set, timeout)


class Semaphore:
    """``threading.Semaphore``."""

    def __init__(self, kernel: Kernel, value: int = 1) -> None:
        self._kernel = kernel
        self._value = value
        self._waiting = WaitQueue(kernel)

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        self._kernel.point("semaphore")
        if not self._waiting.wait_for(lambda: self._value > 0, timeout if blocking else 0.0):
            return False
        self._value -= 1
        return True

    def release(self, n: int = 1) -> None:
        self._value += n
        for _ in range(n):
            self._waiting.wake_one()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()


class BoundedSemaphore(Semaphore):
    """``threading.BoundedSemaphore``."""

    def __init__(self, kernel: Kernel, value: int = 1) -> None:
        super().__init__(kernel, value)
        self._value_max = value

    def release(self, n: int = 1) -> None:
        if self._value + n > self._value_max:
            raise ValueError("Semaphore released too many times")
        super().release(n)


class Condition:
    """``threading.Condition`` over a lock of its own or one that is given."""

    def __init__(self, kernel: Kernel, lock: Lock | RLock | None = None) -> None:
        self._kernel = kernel
        self._lock = lock or RLock(kernel)
        self._waiting = WaitQueue(kernel)
        self._notified: list[list[bool]] = []
        self.acquire = self._lock.acquire
        self.release = self._lock.release

    def wait(self, timeout: float | None = None) -> bool:
        notified: list[bool] = []
        self._notified.append(notified)
        self._lock.release()
        try:
            return self._waiting.wait_for(lambda: bool(notified), timeout)
        finally:
            self._notified = [each for each in self._notified if each is not notified]
            self._lock.acquire()

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        process = self._kernel.running().process
        end_us = None if timeout is None else process.clock.monotonic_us() + timeout * 1_000_000
        while not predicate():
            left = None if end_us is None else (end_us - process.clock.monotonic_us()) / 1_000_000
            if left is not None and left <= 0:
                return False
            self.wait(left)
        return True

    def notify(self, n: int = 1) -> None:
        for notified in [each for each in self._notified if not each][:n]:
            notified.append(True)
        self._waiting.wake_all()

    def notify_all(self) -> None:
        self.notify(len(self._notified))

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


class Thread:
    """``threading.Thread``, of the process that starts it."""

    def __init__(
        self,
        kernel: Kernel,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: Iterable[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        self._kernel = kernel
        self._target = target
        self._arguments = (tuple(args), dict(kwargs or {}))
        self._thread: VirtualThread | None = None
        self._ended = Event(kernel)
        self.name = name or "thread"
        self.daemon = bool(daemon)

    def start(self) -> None:
        self._thread = self._kernel.spawn(self._kernel.running().process, self.name, self.run)
        self._thread.on_end.append(self._ended.set)

    def run(self) -> None:
        positional, named = self._arguments
        if self._target is not None:
            self._target(*positional, **named)

    def join(self, timeout: float | None = None) -> None:
        self._ended.wait(timeout)

    def is_alive(self) -> bool:
        return self._thread is not None and not self._ended.is_set()

    @property
    def ident(self) -> int | None:
        return None if self._thread is None else self._thread.number


class CurrentThread:
    """What ``threading.current_thread`` answers."""

    def __init__(self, thread: VirtualThread | None) -> None:
        self.name = "room" if thread is None else thread.name
        self.ident = 0 if thread is None else thread.number


class Local:
    """``threading.local``: attributes of which each thread has its own."""

    __slots__ = ("_kernel", "_number")

    def __init__(self, kernel: Kernel) -> None:
        object.__setattr__(self, "_kernel", kernel)
        object.__setattr__(self, "_number", kernel.next_number())

    def _values(self) -> dict[str, Any]:
        values: dict[str, Any] = self._kernel.running().local.setdefault(self._number, {})
        return values

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values()[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self._values()[name] = value


class ThreadingModule:
    """Takes the place of the module ``threading`` in the project's modules."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        for name, made in _MADE.items():
            setattr(self, name, _maker(made, kernel))

    def current_thread(self) -> CurrentThread:
        return CurrentThread(self._kernel.current)

    def get_ident(self) -> int:
        return CurrentThread(self._kernel.current).ident

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(f"the simulation has no stand-in for threading.{name}: add one to threads.py")


def _maker(made: Callable[..., Any], kernel: Kernel) -> Callable[..., Any]:
    return lambda *arguments, **named: made(kernel, *arguments, **named)


_MADE: Mapping[str, Callable[..., Any]] = {
    "BoundedSemaphore": BoundedSemaphore,
    "Condition": Condition,
    "Event": Event,
    "Lock": Lock,
    "RLock": RLock,
    "Semaphore": Semaphore,
    "Thread": Thread,
    "local": Local,
}
