"""The virtual machine: threads of which one runs at a time, time that jumps, and a seed that decides who goes next.

Nothing here is concurrent and nothing here waits: a thread that would wait gives control back, and when nobody can run
the clock is put forward to the next event. All choices come from the seed, so the same seed gives the same run, step by
step. The unit of time is the microsecond, as an integer: no sum depends on the order of its parts.
"""

from __future__ import annotations

import asyncio
import heapq
import random
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.simulation.processes import Process, State
from tests.simulation.story import Story
from tests.simulation.switching import Discarded, Stack, leave

STEPS_MAX = 2_000_000
"""A run that needs more steps than this turns in circles."""
STEP_US_MAX = 12
"""Between two switches that much time passes at most: code takes time, and a loop that polls must come to its end."""
WAKE_UP_US_MAX = 100_000
"""A thread of a process that was paused runs again within that time."""


class Stuck(Exception):
    """Nobody can run and nothing will happen any more, or the run turns in circles."""


@dataclass(frozen=True, slots=True)
class Restlessness:
    """How often a thread is interrupted where it could be: at a look at the clock, a lock, or a call to a service."""

    interrupted: float = 0.05
    """Share of such points at which another thread may go first."""
    stalled: float = 0.002
    """Share of such points at which the thread stands still for a while, as a starved or collecting one does."""
    stall_us_max: int = 200_000


class Timer:
    """A call at a moment of virtual time; ``cancel`` makes it a call of nothing."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[], None] | None) -> None:
        self.call = call

    def cancel(self) -> None:
        self.call = None


class VirtualThread:
    """A thread of a simulated process."""

    def __init__(self, kernel: Kernel, process: Process, name: str, body: Callable[[], object], number: int) -> None:
        self.process = process
        self.name = name
        self.number = number
        self.parked = False
        self.woken = False
        self.asleep = False
        """Whether it cannot run for now though its process does: its memory is still coming back."""
        self.local: dict[int, dict[str, Any]] = {}
        self.on_end: list[Callable[[], None]] = []
        self.replace: Callable[[], None] = lambda: None
        """Starts another in its place."""
        self.timer: Timer | None = None
        self.stack = Stack(lambda: kernel.run_body(self, body))

    @property
    def ended(self) -> bool:
        return self.stack.ended


class Kernel:
    """Virtual time, the threads, and the events that are due."""

    def __init__(self, seed: str, story: Story, restlessness: Restlessness) -> None:
        self.now_us = 0
        self.random = random.Random(f"{seed}/schedule")
        self.story = story
        self.restlessness = restlessness
        self.current: VirtualThread | None = None
        self.over = False
        self.steps = 0
        self.defects: list[str] = []
        """What went wrong in the simulated code itself: exceptions that nobody caught."""
        self.on_point: Callable[[str, VirtualThread], None] = lambda label, thread: None
        self._seed = seed
        self._events: list[tuple[int, int, Timer]] = []
        self._ready: list[VirtualThread] = []
        self._threads: list[VirtualThread] = []
        self._numbers = 0
        self._last_moment = 0

    def stream(self, name: str) -> random.Random:
        """A source of choices of its own, so that choices of one kind do not shift those of another."""
        return random.Random(f"{self._seed}/{name}")

    def moment(self) -> int:
        """A number that grows with every call: virtual nanoseconds, no two the same."""
        self._last_moment = max(self._last_moment + 1, self.now_us * 1000)
        return self._last_moment

    def tell(self, text: str) -> None:
        """A line of the story, in the name of whoever runs now."""
        if self.story.is_told:
            who = "room" if self.current is None else f"{self.current.process}/{self.current.name}"
            self.story.add(self.now_us, who, text)

    def tell_of(self, who: object, text: str) -> None:
        """A line of the story about somebody."""
        if self.story.is_told:
            self.story.add(self.now_us, str(who), text)

    def after(self, delay_us: int, call: Callable[[], None]) -> Timer:
        """Call something later, outside of every thread: it must not wait."""
        timer = Timer(call)
        heapq.heappush(self._events, (self.now_us + max(0, delay_us), self.next_number(), timer))
        return timer

    def spawn(self, process: Process, name: str, body: Callable[[], object]) -> VirtualThread:
        """Start a thread."""
        thread = VirtualThread(self, process, name, body, self.next_number())
        self._threads.append(thread)
        self._ready.append(thread)
        return thread

    def running(self) -> VirtualThread:
        """The thread that runs now; there must be one."""
        if self.current is None:
            raise RuntimeError("only a simulated thread can wait, and none is running")
        return self.current

    def point(self, label: str) -> None:
        """A point at which the running thread could be interrupted; ``label`` says what it is about to do."""
        thread = self.current
        if thread is None:
            return
        self.require_going_on()
        self.on_point(label, thread)
        chance = self.random.random()
        if chance < self.restlessness.stalled:
            stall_us = self.random.randrange(self.restlessness.stall_us_max)
            self.tell(f"stands still for {stall_us / 1000:.0f} ms, about to: {label}")
            self.park(stall_us)
        elif chance < self.restlessness.interrupted or thread.process.state is not State.RUNNING:
            self._ready.append(thread)
            self._leave()

    def park(self, timeout_us: int | None = None) -> bool:
        """Wait until woken (true), or for so long by the kernel's clock (false)."""
        self.require_going_on()
        thread = self.running()
        thread.parked, thread.woken = True, False
        if timeout_us is not None:
            thread.timer = self.after(timeout_us, lambda: self._make_ready(thread))
        self._leave()
        return thread.woken

    def wake(self, thread: VirtualThread) -> None:
        """Let a waiting thread go on; nothing where it does not wait."""
        if thread.parked:
            thread.woken = True
            self._make_ready(thread)

    def sleep_us(self, own_us: float) -> None:
        """Let the running thread wait, by its process's clock."""
        self.park(self.running().process.clock.true_us(own_us))

    def require_going_on(self) -> None:
        """Raise in threads that outlive the run: nothing that they do on their way out may count."""
        if self.over:
            raise Discarded

    def run(self, until: Callable[[], bool]) -> None:
        """Let everything happen until ``until`` says that it is enough. Raises ``Stuck``."""
        while not until():
            self._count_step()
            while self._events and self._events[0][0] <= self.now_us:
                self._fire()
            thread = self._next_thread()
            if thread is not None:
                self._enter(thread)
                self.now_us += 1 + int(self.random.random() * STEP_US_MAX)
            elif self._events:
                self.now_us = self._events[0][0]
            else:
                raise Stuck("nobody can run and nothing will happen any more")

    def forget(self, process: Process) -> None:
        """A process is dead: its threads never run again, and are kept so that nothing unwinds."""
        self._ready = [thread for thread in self._ready if thread.process is not process]

    def wake_up_slowly(self, process: Process) -> None:
        """After a pause not all threads of a process run again at once."""
        for thread in self._threads:
            if thread.process is process and self.random.random() < 0.4:
                thread.asleep = True
                self.after(self.random.randrange(WAKE_UP_US_MAX), partial(setattr, thread, "asleep", False))

    def close(self) -> None:
        """End the run: unwind every thread, with nothing that could still take effect."""
        self.over = True
        self._events.clear()
        for thread in self._threads:
            self.current = thread
            thread.stack.discard()
        self.current = None

    def run_body(self, thread: VirtualThread, body: Callable[[], object]) -> None:
        """What a thread's stack runs: its body, and what is to be done after it."""
        try:
            if not self.over:
                body()
        except Discarded:
            pass
        except (Exception, asyncio.CancelledError) as error:
            self.defect(f"a thread of {thread.process} ended by an error: {error!r}", error)
        if not self.over:
            for call in thread.on_end:
                call()

    def defect(self, text: str, error: BaseException | None) -> None:
        """Note that simulated code failed in a way that nobody provided for."""
        if self.over:
            return
        self.defects.append(text)
        self.tell(f"DEFECT: {text}")
        if error is not None:
            for line in "".join(traceback.format_exception(error)).splitlines():
                self.tell(f"  {line}")

    def _leave(self) -> None:
        leave()
        self.require_going_on()

    def _enter(self, thread: VirtualThread) -> None:
        self.current = thread
        try:
            thread.stack.enter()
        finally:
            self.current = None

    def _make_ready(self, thread: VirtualThread) -> None:
        if not thread.parked:
            return
        thread.parked = False
        if thread.timer is not None:
            thread.timer.cancel()
            thread.timer = None
        if thread.process.state is not State.DEAD:
            self._ready.append(thread)

    def _next_thread(self) -> VirtualThread | None:
        able = [
            place
            for place, thread in enumerate(self._ready)
            if thread.process.state is State.RUNNING and not thread.asleep
        ]
        if not able:
            return None
        return self._ready.pop(able[int(self.random.random() * len(able))])

    def _fire(self) -> None:
        call = heapq.heappop(self._events)[2].call
        if call is not None:
            call()

    def _count_step(self) -> None:
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise Stuck(f"the run did not end within {STEPS_MAX} steps")

    def next_number(self) -> int:
        """A number never given before in this run."""
        self._numbers += 1
        return self._numbers


class WaitQueue:
    """Threads that wait for one thing, first come first served."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._threads: deque[VirtualThread] = deque()

    def wait_for(self, holds: Callable[[], bool], timeout_seconds: float | None) -> bool:
        """Wait until ``holds``, at most so long by the process's clock; what it says in the end."""
        if holds():
            return True
        kernel = self._kernel
        thread = kernel.running()
        end_us = None
        if timeout_seconds is not None:
            end_us = kernel.now_us + thread.process.clock.true_us(timeout_seconds * 1_000_000)
        while not holds():
            left_us = None if end_us is None else end_us - kernel.now_us
            if left_us is not None and left_us <= 0:
                return False
            self._wait(thread, left_us)
        return True

    def wake_one(self) -> None:
        """Let the first go on that still waits; one whose time has run out would not pass it on."""
        while self._threads:
            thread = self._threads.popleft()
            if thread.parked:
                self._kernel.wake(thread)
                return

    def wake_all(self) -> None:
        """Let all go on."""
        while self._threads:
            self._kernel.wake(self._threads.popleft())

    def _wait(self, thread: VirtualThread, timeout_us: int | None) -> None:
        self._threads.append(thread)
        try:
            self._kernel.park(timeout_us)
        finally:
            if thread in self._threads:
                self._threads.remove(thread)
