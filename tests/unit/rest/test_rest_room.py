"""What open transactions hold together, where it is known only when it was written."""

from __future__ import annotations

import asyncio

from configuration.rest_limits import RestLimits
from rest.held_transactions import Held, HeldTransactions
from rest.problems import Problem
from rest.writes import Delete
from tests.unit.client.conftest import Installation

COLUMNS = 50
ROW_BYTES = COLUMNS * 200
"""What a delete of the row takes, at least."""
BYTES_MAX = 5 * ROW_BYTES // 2
"""Two such deletes fit, a third leads beyond it."""


def test_deletes_that_wait_for_a_thread_meet_what_those_before_them_took(shared_installation: Installation) -> None:
    manager = shared_installation.manager()
    with manager.transaction() as transaction:
        transaction.put("accounts", b"room", {b"d:%d" % number: b"x" for number in range(COLUMNS)})

    async def scenario() -> None:
        limits = RestLimits(threads_max=1, transactions_bytes_max=BYTES_MAX, transaction_bytes_max=BYTES_MAX)
        held_transactions = HeldTransactions(manager, limits)
        begun = [await held_transactions.begin(read_only=False) for _ in range(6)]

        async def delete(held: Held) -> None:
            async with held_transactions.using(held.transaction.start_timestamp):
                await held_transactions.write(held, [Delete("accounts", b"room", None)])

        ends = await asyncio.gather(*(delete(held) for held in begun), return_exceptions=True)
        assert [end.code for end in ends if isinstance(end, Problem)] == ["too-many-bytes"] * 3
        written = [held.transaction.written_bytes for held in begun]
        assert [each > ROW_BYTES for each in written] == [True] * 3 + [False] * 3
        assert held_transactions.written_bytes == sum(written)
        for held in begun:
            await held_transactions.roll_back(held.transaction.start_timestamp)
        assert held_transactions.written_bytes == 0
        await held_transactions.close()

    asyncio.run(scenario())
