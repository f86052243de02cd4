"""Stand-ins for ``concurrent.futures``: futures that virtual threads wait for, and pools of such threads."""

from __future__ import annotations

import concurrent.futures
from collections import deque
from collections.abc import Callable
from typing import Any

from tests.simulation.kernel import Kernel, WaitQueue
from tests.simulation.processes import Process


class Future:
    """``concurrent.futures.Future``."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._waiting = WaitQueue(kernel)
        self._callbacks: list[Callable[[Future], object]] = []
        self._result: Any = None
        self._error: BaseException | None = None
        self._done = False
        self._running = False

    def set_running_or_notify_cancel(self) -> bool:
        self._running = not self.cancelled()
        return self._running

    def set_result(self, result: Any) -> None:
        self._result = result
        self._finish()

    def set_exception(self, error: BaseException) -> None:
        self._error = error
        self._finish()

    def cancel(self) -> bool:
        if self._running or (self._done and not self.cancelled()):
            return False
        if not self._done:
            self.set_exception(concurrent.futures.CancelledError())
        return True

    def cancelled(self) -> bool:
        return isinstance(self._error, concurrent.futures.CancelledError)

    def running(self) -> bool:
        return self._running and not self._done

    def done(self) -> bool:
        return self._done

    def result(self, timeout: float | None = None) -> Any:
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self._result

    def exception(self, timeout: float | None = None) -> BaseException | None:
        if not self._waiting.wait_for(lambda: self._done, timeout):
            raise TimeoutError
        return self._error

    def add_done_callback(self, call: Callable[[Future], object]) -> None:
        if self._done:
            call(self)
        else:
            self._callbacks.append(call)

    def _finish(self) -> None:
        if self._done:
            raise concurrent.futures.InvalidStateError
        self._done = True
        self._waiting.wake_all()
        for call in self._callbacks:
            call(self)


class ThreadPoolExecutor:
    """``concurrent.futures.ThreadPoolExecutor``: threads of the process that makes it, started as they are needed."""

    def __init__(self, kernel: Kernel, max_workers: int = 4, thread_name_prefix: str = "pool") -> None:
        self._kernel = kernel
        self._process: Process = kernel.running().process
        self._workers_max = max_workers
        self._name = thread_name_prefix
        self._work: deque[tuple[Future, Callable[[], Any]]] = deque()
        self._waiting = WaitQueue(kernel)
        self._idle = 0
        self._workers = 0
        self._closed = False

    def submit(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Future:
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future = Future(self._kernel)
        self._work.append((future, lambda: function(*arguments, **named)))
        if self._idle < len(self._work) and self._workers < self._workers_max:
            self._workers += 1
            self._kernel.spawn(self._process, f"{self._name}-{self._workers}", self._run_worker)
        self._waiting.wake_one()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._closed = True
        if cancel_futures:
            while self._work:
                self._work.popleft()[0].cancel()
        self._waiting.wake_all()
        if wait:
            self._waiting.wait_for(lambda: self._workers == 0, None)

    def _run_worker(self) -> None:
        while True:
            self._idle += 1
            self._waiting.wait_for(lambda: bool(self._work) or self._closed, None)
            self._idle -= 1
            if not self._work:
                break
            future, call = self._work.popleft()
            if future.set_running_or_notify_cancel():
                self._run_one(future, call)
        self._workers -= 1
        self._waiting.wake_all()

    def _run_one(self, future: Future, call: Callable[[], Any]) -> None:
        self._kernel.point("work")
        try:
            result = call()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(result)


class FuturesModule:
    """Takes the place of ``concurrent.futures`` in the project's modules."""

    CancelledError = concurrent.futures.CancelledError
    InvalidStateError = concurrent.futures.InvalidStateError
    TimeoutError = TimeoutError

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def Future(self) -> Future:  # noqa: N802 - stands for a class
        return Future(self._kernel)

    def ThreadPoolExecutor(self, *arguments: Any, **named: Any) -> ThreadPoolExecutor:  # noqa: N802
        return ThreadPoolExecutor(self._kernel, *arguments, **named)

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(f"the simulation has no stand-in for concurrent.futures.{name}: add one to pools.py")


class ConcurrentPackage:
    """Takes the place of the package ``concurrent``."""

    def __init__(self, kernel: Kernel) -> None:
        self.futures = FuturesModule(kernel)
