"""Tasks that are cancelled at any moment, by asyncio or by AnyIO: in the middle of a begin, a read, a savepoint, a
commit, a rollback, or while they wait for a thread. Whatever it was, each transaction lands whole or not at all, says
which, and none stays open.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field

import pytest
from anyio import CancelScope

from client import (
    AsyncTransaction,
    AsyncTransactionManager,
    Conflict,
    Transaction,
    TransactionManager,
    TransactionStatus,
)
from tests.examples import examples
from tests.unit.client.conftest import A

ACCOUNTS = [b"account-%d" % number for number in range(8)]
BALANCE = 100
TRANSFERS = 150
AT_ONCE_MAX = 20
THREADS = 2
"""So few that some wait for one."""
CANCELLED_ONE_IN = 3
WAIT_SECONDS_MAX = 60


class Undone(Exception):
    """What a block raises that is to be undone."""


@dataclass
class Bank:
    """Tasks that carry money from one account to another, and what became of each."""

    front: AsyncTransactionManager
    draw: random.Random
    begun: dict[bytes, AsyncTransaction] = field(default_factory=dict)
    """By the row that it writes besides, which nobody else does."""
    fates: Counter[str] = field(default_factory=Counter)

    async def transfer(self, row: bytes, scope: CancelScope) -> None:
        """In a transaction, and in a scope, that somebody may cancel."""
        fate = "cancelled by AnyIO"
        with scope:
            try:
                async with self.front.transaction() as transaction:
                    self.begun[row] = transaction
                    await transaction.put("t", row, {A: b""})
                    await self._carry(transaction)
                fate = "committed"
            except Conflict:
                fate = "conflict"
            except Undone:
                fate = "undone"
        self.fates[fate] += 1

    async def _carry(self, transaction: AsyncTransaction) -> None:
        payer, payee = self.draw.sample(ACCOUNTS, 2)
        found = await transaction.get_many("t", [payer, payee])
        changed = {payer: int(found[payer][A]) - 1, payee: int(found[payee][A]) + 1}
        kind = self.draw.randrange(4)
        if kind == 0:
            await self._undone(transaction, payer)

        async def write(account: bytes) -> None:
            await transaction.put("t", account, {A: b"%d" % changed[account]})

        if kind == 1:
            await asyncio.gather(write(payer), write(payee))
        else:
            await write(payer)
            await write(payee)
        if kind == 2:
            seen = [int(values[A]) async for _, values in transaction.scan("t", prefix=b"account-")]
            assert sum(seen) == BALANCE * len(ACCOUNTS)
        if kind == 3 and self.draw.random() < 0.5:
            raise Undone

    async def _undone(self, transaction: AsyncTransaction, account: bytes) -> None:
        try:
            async with transaction.savepoint():
                await transaction.put("t", account, {A: b"1000000"})
                raise Undone
        except Undone:
            pass


async def everything_is_transferred(bank: Bank) -> None:
    """Or cancelled, some of it several times."""
    running: dict[asyncio.Task[None], CancelScope] = {}
    for number in range(TRANSFERS):
        scope = CancelScope()
        task = asyncio.create_task(bank.transfer(b"transfer-%d" % number, scope))
        running[task] = scope
        task.add_done_callback(running.pop)
        await asyncio.sleep(0.005 * bank.draw.random())
        while len(running) > AT_ONCE_MAX:
            await asyncio.sleep(0.001)
        if running and bank.draw.randrange(CANCELLED_ONE_IN) == 0:
            task = bank.draw.choice(list(running))
            if bank.draw.random() < 0.5:
                running[task].cancel()
            else:
                for _ in range(bank.draw.randint(1, 3)):
                    bank.fates["cancelled by asyncio"] += task.cancel()
                    await asyncio.sleep(0)
    await asyncio.gather(*running, return_exceptions=True)
    while any(transaction.status is TransactionStatus.ACTIVE for transaction in bank.begun.values()):
        await asyncio.sleep(0.01)


def open_accounts(transaction: Transaction) -> None:
    for account in ACCOUNTS:
        transaction.put("t", account, {A: b"%d" % BALANCE})


@pytest.mark.parametrize("seed", range(examples(3)))
def test_a_transaction_lands_whole_or_not_and_none_stays_open(manager: TransactionManager, seed: int) -> None:
    async def test() -> None:
        async with asyncio.timeout(WAIT_SECONDS_MAX), AsyncTransactionManager(manager, threads=THREADS) as front:
            await front.run(lambda opened: opened.apply(open_accounts))
            bank = Bank(front, random.Random(seed))
            await everything_is_transferred(bank)
            snapshot = await front.snapshot()
            rows = {row: values[A] async for row, values in snapshot.scan("t")}
            assert sum(int(rows.pop(account)) for account in ACCOUNTS) == BALANCE * len(ACCOUNTS)
            committed, aborted = (
                {row for row, each in bank.begun.items() if each.status is status}
                for status in (TransactionStatus.COMMITTED, TransactionStatus.ABORTED)
            )
            assert rows.keys() == committed == bank.begun.keys() - aborted
            assert {
                "committed",
                "conflict",
                "undone",
                "cancelled by AnyIO",
                "cancelled by asyncio",
            } == bank.fates.keys()

    asyncio.run(test())
