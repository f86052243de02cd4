"""Broken rules of transactions for tasks: which calls are made, one after the other, and what a cancellation means."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_CALLS = "unit/client/test_blocking_calls.py::"
_TRANSACTIONS = "unit/client/test_async_transactions.py::"
_BLOCKING_CALLS = "client/asyncio_front/blocking_calls.py"
_TRANSACTION = "client/asyncio_front/transaction.py"

ASYNCIO_RULES = [
    Mutation(
        "who is cancelled leaves while its call is under way",
        _BLOCKING_CALLS,
        "                cancelled = error",
        "                raise error",
        _CALLS + "test_a_call_that_has_begun_is_waited_for_by_who_is_cancelled",
    ),
    Mutation(
        "a cancellation is forgotten when the call has ended",
        _BLOCKING_CALLS,
        "            raise cancelled",
        "            pass",
        _TRANSACTIONS + "test_a_commit_that_is_cancelled_goes_on_and_its_status_says_so",
    ),
    Mutation(
        "a call that raises StopIteration is taken for one that returned",
        _BLOCKING_CALLS,
        '        raise RuntimeError("a call raised StopIteration") from error',
        "        return error.value",
        _CALLS + "test_what_a_call_raises_is_raised",
    ),
    Mutation(
        "a thread is waited for without an end",
        _BLOCKING_CALLS,
        "asyncio.timeout(self._wait_ms_max / 1000)",
        "asyncio.timeout(None)",
        _CALLS + "test_a_thread_is_waited_for_no_longer_than_may_be",
    ),
    Mutation(
        "calls that waited are made after the close",
        _BLOCKING_CALLS,
        "        try:\n            self._require_open()\n            yield",
        "        try:\n            yield",
        _CALLS + "test_nothing_is_made_after_the_close_and_what_has_begun_comes_to_its_end",
    ),
    Mutation(
        "a second event loop is served",
        _BLOCKING_CALLS,
        "        if self._loop is not loop:",
        "        if False:",
        _CALLS + "test_one_event_loop_and_no_other",
    ),
    Mutation(
        "two tasks are in one transaction at once",
        _TRANSACTION,
        "partial(work, self._transaction), self._turn)",
        "partial(work, self._transaction))",
        _TRANSACTIONS + "test_tasks_in_one_transaction_are_never_in_it_at_once",
    ),
    Mutation(
        "half of a block commits whose savepoint could not be gone back to",
        _TRANSACTION,
        "            if self._transaction.status is TransactionStatus.ACTIVE:",
        "            if False:",
        _TRANSACTIONS + "test_a_savepoints_block_whose_end_is_cancelled_forbids_the_commit",
    ),
    Mutation(
        "a block's own error is hidden by that of its rollback",
        _TRANSACTION,
        "            if kind is None:\n                raise\n            # The block's",
        "            raise\n            # The block's",
        _TRANSACTIONS + "test_no_thread_to_end_a_transactions_block_with",
    ),
    Mutation(
        "a scan that is left is closed on the event loop",
        "client/asyncio_front/streaming.py",
        "        await run(rows.close)",
        "        rows.close()",
        _TRANSACTIONS + "test_a_scan_of_several_pieces_and_one_that_is_left",
    ),
]
