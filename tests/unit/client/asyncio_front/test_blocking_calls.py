"""Calls that block, made in threads for tasks: which are made, in which order, and what becomes of those cancelled."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import gc
import threading
import weakref
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from anyio import CancelScope

from client.asyncio_front import blocking_calls
from client.asyncio_front.blocking_calls import BlockingCalls
from client.errors import InvalidRequest
from store import StoreUnavailable

WAIT_SECONDS_MAX = 20
WAIT_MS_MAX = 1_000 * WAIT_SECONDS_MAX


class Gate:
    """A call that blocks until the test lets it go on."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.goes_on = threading.Event()
        self.ended = False

    def __call__(self) -> str:
        self.began.set()
        assert self.goes_on.wait(WAIT_SECONDS_MAX)
        self.ended = True
        return "done"

    def pass_through(self) -> None:
        self()

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.began.wait, WAIT_SECONDS_MAX)


async def begun(calls: BlockingCalls, turn: asyncio.Lock | None = None) -> tuple[Gate, asyncio.Task[str]]:
    """A call that is under way, and blocks."""
    gate = Gate()
    running = asyncio.create_task(calls.run(gate, turn))
    await gate.has_begun()
    return gate, running


async def cancel_amid(calls: BlockingCalls, call: Callable[[], object], gate: Gate) -> None:
    """Cancel who waits for a call that stands at a gate, and let it go on. Holds nothing of it afterwards."""
    running = asyncio.create_task(calls.run(call))
    await gate.has_begun()
    running.cancel()
    await asyncio.sleep(0)
    gate.goes_on.set()
    try:
        await running
    except asyncio.CancelledError:
        return
    finally:
        del running, call
    pytest.fail("it was not cancelled")


def raise_it(error: type[BaseException]) -> None:
    raise error


def on_a_loop(
    test: Callable[[BlockingCalls], Awaitable[None]], threads: int = 2, wait_ms_max: int = WAIT_MS_MAX
) -> None:
    async def bounded() -> None:
        calls = BlockingCalls(threads, wait_ms_max)
        try:
            async with asyncio.timeout(WAIT_SECONDS_MAX):
                await test(calls)
        finally:
            await calls.close(lambda: None)

    asyncio.run(bounded())


def test_the_event_loop_goes_on_while_calls_block() -> None:
    async def test(calls: BlockingCalls) -> None:
        gates = [Gate(), Gate()]
        running = [asyncio.create_task(calls.run(gate)) for gate in gates]
        for gate in gates:
            await gate.has_begun()
        for gate in gates:
            gate.goes_on.set()
        assert await asyncio.gather(*running) == ["done", "done"]

    on_a_loop(test)


def test_the_next_thread_goes_to_the_party_that_has_the_fewest() -> None:
    async def test(calls: BlockingCalls) -> None:
        order: list[str] = []
        gate, first = await begun(calls)
        asked = [
            asyncio.create_task(calls.run(partial(order.append, party), party=party)) for party in ("", "", "other")
        ]
        await asyncio.sleep(0)
        gate.goes_on.set()
        await asyncio.gather(first, *asked)
        assert order == ["other", "", ""]

    on_a_loop(test, threads=1)


def test_a_thread_that_comes_free_as_who_waited_for_it_is_cancelled_goes_to_the_next() -> None:
    async def test(calls: BlockingCalls) -> None:
        async with calls._place(""):
            cancelled, following = (asyncio.create_task(calls.run(lambda: "done")) for _ in range(2))
            await asyncio.sleep(0)
            cancelled.cancel()
        assert await following == "done"
        assert cancelled.cancelled()

    on_a_loop(test, threads=1)


def test_what_a_call_raises_is_raised() -> None:
    async def test(calls: BlockingCalls) -> None:
        with pytest.raises(ZeroDivisionError):
            await calls.run(lambda: 1 // 0)
        for error in (StopIteration, asyncio.CancelledError, concurrent.futures.CancelledError):
            with pytest.raises(RuntimeError, match=error.__name__):  # no future can tell of it
                await calls.run(partial(raise_it, error))

    on_a_loop(test)


def test_a_call_that_has_begun_is_waited_for_by_who_is_cancelled() -> None:
    async def test(calls: BlockingCalls) -> None:
        gate, running = await begun(calls)
        for _ in range(3):
            running.cancel()
            await asyncio.sleep(0)
        assert not running.done()
        gate.goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert gate.ended

    on_a_loop(test)


def test_a_call_is_waited_for_once_though_anyio_cancels_in_every_turn_of_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = 0
    wait = asyncio.wait

    def counted(futures: tuple[asyncio.Future[str]]) -> Awaitable[object]:
        nonlocal waits
        waits += 1
        return wait(futures)

    monkeypatch.setattr(asyncio, "wait", counted)

    async def test(calls: BlockingCalls) -> None:
        gate = Gate()
        with CancelScope() as scope:
            running = asyncio.create_task(open_later(gate, scope))
            await calls.run(gate)
        assert (gate.ended, scope.cancelled_caught, waits) == (True, True, 2)
        await running

    async def open_later(gate: Gate, scope: CancelScope) -> None:
        await gate.has_begun()
        scope.cancel()
        for _ in range(100):
            await asyncio.sleep(0)
        gate.goes_on.set()

    on_a_loop(test)


def test_who_is_cancelled_by_anyio_and_then_by_asyncio_is_told_of_the_latter() -> None:
    """Whoever cancels the task as a whole would else wait for ever: the scope keeps what is its own."""

    async def in_scope(scope: CancelScope, call: Awaitable[str]) -> None:
        with scope:
            await call

    async def test(calls: BlockingCalls) -> None:
        gate, scope = Gate(), CancelScope()
        running = asyncio.create_task(in_scope(scope, calls.run(gate)))
        await gate.has_begun()
        scope.cancel()
        await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.sleep(0)
        gate.goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await running

    on_a_loop(test)


def test_what_a_call_raises_after_a_cancellation_is_not_complained_about(caplog: pytest.LogCaptureFixture) -> None:
    async def test(calls: BlockingCalls) -> None:
        gate = Gate()

        def failing() -> None:
            gate()
            raise ValueError

        await cancel_amid(calls, failing, gate)

    on_a_loop(test)
    gc.collect()
    assert not caplog.records


def test_one_turn_after_the_other() -> None:
    async def test(calls: BlockingCalls) -> None:
        turn, gate, order = asyncio.Lock(), Gate(), list[int]()
        running: list[asyncio.Task[object]] = [asyncio.create_task(calls.run(gate, turn))]
        await gate.has_begun()
        running += [asyncio.create_task(calls.run(partial(order.append, number), turn)) for number in range(10)]
        assert await calls.run(lambda: "of no turn") == "of no turn"
        assert not order
        gate.goes_on.set()
        await asyncio.gather(*running)
        assert order == list(range(10))

    on_a_loop(test)


@pytest.mark.parametrize("threads", [1, 2], ids=["for-a-thread", "for-its-turn"])
def test_a_call_that_is_cancelled_while_it_waits_is_never_made(threads: int) -> None:
    async def test(calls: BlockingCalls) -> None:
        turn, made = asyncio.Lock(), list[str]()
        gate, running = await begun(calls, turn)
        waiting = asyncio.create_task(calls.run(partial(made.append, "made"), turn if threads == 2 else None))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        gate.goes_on.set()
        assert await running == "done"
        assert await calls.run(lambda: "the next", turn) == "the next"
        assert not made

    on_a_loop(test, threads)


def test_a_thread_is_waited_for_no_longer_than_may_be() -> None:
    async def test(calls: BlockingCalls) -> None:
        gate, running = await begun(calls)
        with pytest.raises(StoreUnavailable, match=r"all 1 threads .* busy for 10 ms: give the manager more"):
            await calls.run(lambda: pytest.fail("it was made"))
        gate.goes_on.set()
        await running
        assert await calls.run(lambda: "later") == "later"

    on_a_loop(test, threads=1, wait_ms_max=10)


def test_no_more_calls_are_pending_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking_calls, "CALLS_PENDING_MAX", 2)

    async def test(calls: BlockingCalls) -> None:
        gate = Gate()
        running = [asyncio.create_task(calls.run(gate)) for _ in range(2)]
        await gate.has_begun()
        await asyncio.sleep(0)
        with pytest.raises(InvalidRequest, match="2 calls are under way"):
            await calls.run(lambda: pytest.fail("it was made"))
        gate.goes_on.set()
        await asyncio.gather(*running)
        assert await calls.run(lambda: "later") == "later"

    on_a_loop(test, threads=1)


def test_nothing_is_made_after_the_close_and_what_has_begun_comes_to_its_end() -> None:
    async def test(calls: BlockingCalls) -> None:
        gate, running = await begun(calls)
        waiting = asyncio.create_task(calls.run(lambda: pytest.fail("it was made")))
        await asyncio.sleep(0)
        made = list[str]()
        await calls.close(partial(made.append, "last"))
        assert made == ["last"]
        with pytest.raises(InvalidRequest, match="closed"):
            await calls.run(lambda: pytest.fail("it was made"))
        gate.goes_on.set()
        assert await running == "done"
        with pytest.raises(InvalidRequest, match="closed"):
            await waiting

    on_a_loop(test, threads=1)


def test_one_event_loop_and_no_other() -> None:
    calls = BlockingCalls(1, WAIT_MS_MAX)
    assert asyncio.run(calls.run(lambda: "first")) == "first"
    with pytest.raises(InvalidRequest, match="make one for each loop"):
        asyncio.run(calls.run(lambda: pytest.fail("it was made")))
    asyncio.run(calls.close(lambda: None))


def test_the_context_of_the_task_goes_along() -> None:
    request = contextvars.ContextVar[str]("request")

    async def test(calls: BlockingCalls) -> None:
        request.set("17")
        assert await calls.run(request.get) == "17"

    on_a_loop(test)


def test_a_call_for_which_no_thread_can_be_started_is_never_made(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(calls: BlockingCalls) -> None:
        made = list[str]()
        gate, running = await begun(calls)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", lambda _: raise_it(RuntimeError))
            with pytest.raises(StoreUnavailable, match="no thread could be had"):
                await calls.run(partial(made.append, "made"))
        gate.goes_on.set()
        await running
        assert await calls.run(lambda: "later") == "later"
        assert not made

    on_a_loop(test)


def test_who_gives_a_place_up_leaves_it_to_the_next() -> None:
    async def test(calls: BlockingCalls) -> None:
        for _ in range(3):
            gate, running = await begun(calls)
            waiting = [asyncio.create_task(calls.run(lambda: "next")) for _ in range(3)]
            await asyncio.sleep(0)
            gate.goes_on.set()
            while not running.done():  # the place is given to the first in line in the same turn of the loop
                await asyncio.sleep(0)
            waiting[0].cancel()
            assert await asyncio.gather(*waiting[1:]) == ["next", "next"]
            await asyncio.wait(waiting)

    on_a_loop(test, threads=1)


def test_who_was_cancelled_once_is_told_of_busy_threads_all_the_same() -> None:
    async def test(calls: BlockingCalls) -> None:
        gate, running = await begun(calls)

        async def cancelled_once() -> None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(WAIT_SECONDS_MAX)
            await calls.run(lambda: pytest.fail("it was made"))

        late = asyncio.create_task(cancelled_once())
        await asyncio.sleep(0)
        late.cancel()
        with pytest.raises(StoreUnavailable):
            await late
        gate.goes_on.set()
        await running

    on_a_loop(test, threads=1, wait_ms_max=10)


def test_a_close_that_is_cancelled_is_made_all_the_same() -> None:
    async def test(calls: BlockingCalls) -> None:
        gate = Gate()
        closing = asyncio.create_task(calls.close(gate.pass_through))
        await gate.has_begun()
        closing.cancel()
        await asyncio.sleep(0)
        assert not closing.done()
        gate.goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert gate.ended

    on_a_loop(test)


def test_a_close_with_nothing_to_do_last_waits_for_what_has_begun() -> None:
    async def test(calls: BlockingCalls) -> None:
        gate, running = await begun(calls)
        closing = asyncio.create_task(calls.close())
        await asyncio.sleep(0.02)
        assert not closing.done()
        gate.goes_on.set()
        await closing
        assert gate.ended
        assert await running == "done"

    on_a_loop(test)


def test_what_is_given_back_in_a_turn_comes_after_the_calls_that_wait_for_it() -> None:
    done = list[str]()

    async def test(calls: BlockingCalls) -> None:
        turn = asyncio.Lock()
        gate, running = await begun(calls, turn)
        waiting = asyncio.create_task(calls.run(partial(done.append, "a call"), turn))
        await asyncio.sleep(0)
        calls.clean_up_in_turn(partial(done.append, "given back"), turn)
        after = asyncio.create_task(calls.run(partial(done.append, "a later call"), turn))
        gate.goes_on.set()
        await asyncio.gather(running, waiting, after)
        assert done == ["a call", "given back", "a later call"]

    on_a_loop(test)


def test_what_cannot_be_given_back_in_its_turn_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def test(calls: BlockingCalls) -> None:
        turn = asyncio.Lock()
        calls.clean_up_in_turn(partial(raise_it, ValueError), turn)
        await asyncio.sleep(0)
        await calls.run(lambda: None, turn)

    on_a_loop(test)
    gc.collect()
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_what_cannot_be_given_back_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def test(calls: BlockingCalls) -> None:
        await calls.close(lambda: None)
        calls.clean_up(partial(raise_it, ValueError))  # after the close, too

    on_a_loop(test)
    assert "could not be given back" in caplog.text


def test_who_fails_or_is_cancelled_leaves_nothing_behind_that_holds_what_it_was_about() -> None:
    class Held:
        """A transaction, say, which lives for as long as somebody holds it."""

    async def test(calls: BlockingCalls) -> None:
        for error in (ValueError, SystemError):
            held = Held()
            gone = weakref.ref(held)

            def failing(_: Held = held, error: type[Exception] = error) -> None:
                raise error

            with contextlib.suppress(error):
                await calls.run(failing)
            del held, failing
            await calls.run(lambda: "the thread has gone on")
            assert gone() is None
        held, gate = Held(), Gate()
        gone = weakref.ref(held)

        def failing_late(_: Held = held) -> None:
            gate()
            raise ValueError

        await cancel_amid(calls, failing_late, gate)
        del held, failing_late
        await calls.run(lambda: "the thread has gone on")
        assert gone() is None

    gc.disable()
    try:
        on_a_loop(test, threads=1)  # with two the other one may make the last call while the first has not gone on
    finally:
        gc.enable()


@pytest.mark.parametrize("threads", [0, -1, 10_001, 1.5, True, "4"])
def test_a_number_of_threads_that_cannot_be(threads: int) -> None:
    with pytest.raises(InvalidRequest, match="threads is a whole number from 1"):
        BlockingCalls(threads, WAIT_MS_MAX)
