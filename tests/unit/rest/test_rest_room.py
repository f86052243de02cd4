"""What open transactions hold together, where it is known only when it was written."""

from __future__ import annotations

import asyncio

from configuration.rest_limits import RestLimits
from rest.gateway import Gateway, Held
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
        gateway = Gateway(manager, limits)
        begun = [await gateway.begin(read_only=False) for _ in range(6)]

        async def delete(held: Held) -> None:
            async with gateway.using(held.transaction.start_timestamp):
                await gateway.write(held, [Delete("accounts", b"room", None)])

        ends = await asyncio.gather(*(delete(held) for held in begun), return_exceptions=True)
        assert [end.code for end in ends if isinstance(end, Problem)] == ["too-many-bytes"] * 3
        written = [held.transaction.written_bytes for held in begun]
        assert [each > ROW_BYTES for each in written] == [True] * 3 + [False] * 3
        assert gateway.written_bytes == sum(written)
        for held in begun:
            await gateway.roll_back(held.transaction.start_timestamp)
        assert gateway.written_bytes == 0
        await gateway.close()

    asyncio.run(scenario())
