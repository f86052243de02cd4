"""A virtual asyncio event loop: one a simulated oracle process, run by one of its virtual threads.

asyncio's own futures, tasks, locks and time-outs run on it unchanged; what stands in is only what would touch the
machine: the waiting, the clock, the sockets and the threads.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any

from tests.simulation.kernel import Kernel, WaitQueue
from tests.simulation.network import Endpoint, Network
from tests.simulation.pools import Future, ThreadPoolExecutor
from tests.simulation.processes import Process
from tests.simulation.transport import AnyProtocol, VirtualServer, VirtualTransport


class VirtualLoop(asyncio.AbstractEventLoop):
    """As much of an event loop as the oracle process uses."""

    def __init__(self, kernel: Kernel, process: Process, network: Network) -> None:
        self.kernel = kernel
        self.process = process
        self._network = network
        self._soon: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timers_made = 0
        self._waiting = WaitQueue(kernel)
        self._threads: ThreadPoolExecutor | None = None
        self._tasks: list[asyncio.Task[Any]] = []

    def run_until_complete(self, future: Any) -> Any:
        """Run on the calling virtual thread until the coroutine has ended."""
        asyncio._set_running_loop(self)
        try:
            task = self.create_task(future)
            while not task.done():
                self._run_once()
            return task.result()
        finally:
            asyncio._set_running_loop(None)

    def discard(self) -> None:
        """End every coroutine that never came to its end, whatever it says to that."""
        for task in self._tasks:
            coroutine = task.get_coro()
            try:
                if coroutine is not None:
                    coroutine.close()
            except BaseException:
                continue

    def time(self) -> float:
        return self.process.clock.monotonic_us() / 1_000_000

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._soon.append(handle)
        return handle

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = self.call_soon(callback, *args, context=context)
        self._waiting.wake_all()
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._timers_made += 1
        heapq.heappush(self._timers, (when, self._timers_made, timer))
        return timer

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, **named: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(coro, loop=self, **named)
        self._tasks.append(task)
        return task

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        if executor is None:
            executor = self._threads = self._threads or ThreadPoolExecutor(self.kernel, 8, "default")
        return self._wrapped(executor.submit(func, *args))

    async def create_server(  # type: ignore[override]
        self, protocol_factory: Callable[[], AnyProtocol], host: str, port: int, **named: Any
    ) -> VirtualServer:
        def accept(endpoint: Endpoint) -> None:
            self.call_soon_threadsafe(lambda: VirtualTransport(self, endpoint, protocol_factory()))

        return VirtualServer(self._network, self.process, host, port, accept)

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], AnyProtocol], host: str, port: int, **named: Any
    ) -> tuple[VirtualTransport, AnyProtocol]:
        attempt = self._network.attempt(self.process, f"{host}:{port}")
        answered = self.create_future()

        def end() -> None:
            if not answered.done():
                answered.set_result(None)

        attempt.when_ended(lambda: self.call_soon_threadsafe(end))
        try:
            await answered
        except asyncio.CancelledError:
            attempt.give_up()
            raise
        endpoint, protocol = attempt.endpoint(), protocol_factory()
        return VirtualTransport(self, endpoint, protocol), protocol

    def close(self) -> None:
        """Nothing of the machine's is held."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.kernel.defect(f"in the event loop of {self.process}: {context.get('message')}: {error!r}", error)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Called by ``TimerHandle.cancel``. The handle stays in the heap, where it does nothing."""

    def _run_once(self) -> None:
        self._waiting.wait_for(self._has_work, self._seconds_to_next_timer())
        now = self.time()
        while self._timers and self._timers[0][0] <= now:
            self._soon.append(heapq.heappop(self._timers)[2])
        for _ in range(len(self._soon)):
            handle = self._soon.popleft()
            if not handle.cancelled():
                self.kernel.point("event loop")
                handle._run()

    def _has_work(self) -> bool:
        return bool(self._soon) or bool(self._timers and self._timers[0][0] <= self.time())

    def _seconds_to_next_timer(self) -> float | None:
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        return max(0.0, self._timers[0][0] - self.time()) if self._timers else None

    def _wrapped(self, source: Future) -> asyncio.Future[Any]:
        """A future of this loop that ends as ``source`` does, and takes it along when it is cancelled."""
        wrapped = self.create_future()

        def carry_over() -> None:
            if wrapped.cancelled():
                return
            if source.cancelled():
                wrapped.cancel()
                return
            error = source.exception()
            if error is not None:
                wrapped.set_exception(error)
            else:
                wrapped.set_result(source.result())

        source.add_done_callback(lambda _: self.call_soon_threadsafe(carry_over))
        wrapped.add_done_callback(lambda _: source.cancel() if wrapped.cancelled() else None)
        return wrapped
