"""What is not used any more goes, and whatever of it has to be waited for is waited for last."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import cast

import pytest

from client import Aborted, Committed, NoPrimary, TransactionManager
from configuration.rest_limits import RestLimits
from rest.held_transactions import SETTLED_AT_ONCE_MAX, HeldTransactions
from rest.owners import CALLER
from rest.problems import Problem
from tests.unit.rest.conftest import WAIT_S

IDLE_MS = 1_000
THREADS = SETTLED_AT_ONCE_MAX
DEADLINE_MS = 50


class Transactions:
    """Takes the place of a manager, and of all its transactions' ends."""

    def __init__(self) -> None:
        self._begun = 0
        self.ended: list[int] = []
        self.settled_together = threading.Barrier(SETTLED_AT_ONCE_MAX)
        self.failing = False

    def transaction(self, *, read_only: bool = False) -> Begun:
        self._begun += 1
        return Begun(self, self._begun)


class Begun:
    def __init__(self, all_of_them: Transactions, start_timestamp: int) -> None:
        self._all = all_of_them
        self.start_timestamp = start_timestamp
        self.settling = False
        self.written_bytes = 0

    def rollback(self) -> Committed | Aborted:
        self._all.ended.append(self.start_timestamp)
        if self.settling:
            self._all.settled_together.wait(WAIT_S)
            if self._all.failing:
                raise NoPrimary(0, "nobody serves")
        return Aborted()


class House:
    """Held transactions whose clock is the test's."""

    def __init__(self, deadline_ms: int = DEADLINE_MS) -> None:
        self.transactions = Transactions()
        self.now_s = 0.0
        limits = RestLimits(transaction_idle_ms_max=IDLE_MS, threads_max=THREADS, deadline_ms=deadline_ms)
        manager = cast(TransactionManager, self.transactions)
        self.held_transactions = HeldTransactions(manager, limits, now_s=lambda: self.now_s)

    async def begin(self, count: int, *, settling: bool = False) -> list[int]:
        begun = []
        for _ in range(count):
            held = await self.held_transactions.begin(read_only=False)
            held.settling = held.transaction.settling = settling  # type: ignore[attr-defined]
            begun.append(held.transaction.start_timestamp)
        return begun

    async def expire(self) -> list[int]:
        """Which ended."""
        self.now_s += 2 * IDLE_MS / 1000
        self.transactions.ended.clear()
        assert await self.held_transactions.expire() == len(self.transactions.ended)
        return self.transactions.ended.copy()


@pytest.mark.parametrize("failing", [False, True], ids=["settled", "nobody serves"])
def test_what_has_to_be_settled_keeps_no_place_of_what_is_idle(failing: bool) -> None:
    async def scenario() -> None:
        house = House()
        house.transactions.failing = failing
        settling = await house.begin(2 * SETTLED_AT_ONCE_MAX, settling=True)
        idle = await house.begin(3)
        ended = await house.expire()
        assert ended[:3] == idle
        assert sorted(ended[3:]) == settling[:SETTLED_AT_ONCE_MAX]
        late = await house.begin(2)
        ended = await house.expire()
        assert ended[:2] == late, "they wait for no more than was settled at once"
        assert sorted(ended[2:]) == settling[SETTLED_AT_ONCE_MAX:]
        assert house.held_transactions.transactions == 0
        await house.held_transactions.close()

    asyncio.run(scenario())


def test_what_is_due_while_no_thread_is_free_stays_due() -> None:
    async def scenario() -> None:
        house = House()
        begun = await house.begin(2)
        all_busy, go_on = threading.Barrier(THREADS + 1), threading.Event()

        def slowly() -> None:
            all_busy.wait(WAIT_S)
            assert go_on.wait(WAIT_S)

        slow = [asyncio.create_task(house.held_transactions.in_thread(slowly)) for _ in range(THREADS)]
        await asyncio.to_thread(all_busy.wait, WAIT_S)
        house.now_s += 2 * IDLE_MS / 1000
        await house.held_transactions.expire()
        assert house.transactions.ended == []
        assert house.held_transactions.transactions == 2
        go_on.set()
        await asyncio.gather(*slow)
        await house.held_transactions.expire()
        assert house.transactions.ended == begun
        assert house.held_transactions.transactions == 0
        await house.held_transactions.close()

    asyncio.run(scenario())


def test_who_asks_for_what_is_just_being_given_up_is_told_so_and_to_ask_again() -> None:
    async def scenario() -> None:
        house = House()
        (start_timestamp,) = await house.begin(1, settling=True)
        house.transactions.settled_together = threading.Barrier(2)
        house.now_s += 2 * IDLE_MS / 1000
        expiring = asyncio.create_task(house.held_transactions.expire())
        while not house.transactions.ended:
            await asyncio.sleep(0)
        with pytest.raises(Problem, match="it is being rolled back") as told:
            await house.held_transactions.commit(start_timestamp)
        assert (told.value.code, told.value.kind.again) == ("transaction-busy", "request")
        await asyncio.to_thread(house.transactions.settled_together.wait, WAIT_S)
        assert await expiring == 1
        with pytest.raises(Problem) as told:
            await house.held_transactions.commit(start_timestamp)
        assert told.value.code == "transaction-expired"
        await house.held_transactions.close()

    asyncio.run(scenario())


def test_who_asks_for_much_does_not_keep_others_from_a_thread() -> None:
    async def scenario() -> None:
        house = House(deadline_ms=int(1_000 * WAIT_S))
        begun, may_end, order = threading.Semaphore(0), threading.Semaphore(0), list[str]()

        def slowly() -> None:
            begun.release()
            assert may_end.acquire(timeout=WAIT_S)

        def ask(caller: str, call: Callable[[], None]) -> asyncio.Task[None]:
            CALLER.set(caller)
            return asyncio.create_task(house.held_transactions.in_thread(call))

        slow = [ask("much", slowly) for _ in range(THREADS)]
        for _ in slow:
            assert await asyncio.to_thread(begun.acquire, timeout=WAIT_S)
        quick = [ask(caller, partial(order.append, caller)) for caller in ("much", "much", "little")]
        await asyncio.sleep(0)
        may_end.release()
        await asyncio.gather(*quick)
        assert order == ["little", "much", "much"]
        may_end.release(THREADS)
        await asyncio.gather(*slow)
        await house.held_transactions.close()

    asyncio.run(scenario())
