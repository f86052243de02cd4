"""Broken rules of transactions for tasks: which calls are made, one after the other, and what a cancellation means."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_CALLS = "unit/client/asyncio_front/test_blocking_calls.py::"
_TRANSACTIONS = "unit/client/asyncio_front/test_async_transactions.py::"
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
        "who waits for a call is cancelled by AnyIO in every turn of the event loop",
        _BLOCKING_CALLS,
        "CancelScope(shield=True)",
        "CancelScope()",
        _CALLS + "test_a_call_is_waited_for_once_though_anyio_cancels_in_every_turn_of_the_loop",
    ),
    Mutation(
        "what is given back in a turn comes before the calls that wait for it",
        _BLOCKING_CALLS,
        "                async with turn:",
        "                async with asyncio.Lock():",
        _CALLS + "test_what_is_given_back_in_a_turn_comes_after_the_calls_that_wait_for_it",
    ),
    Mutation(
        "a transaction whose block's end was cancelled stays open",
        _TRANSACTION,
        "            if not has_begun:",
        "            if False:",
        _TRANSACTIONS + "test_a_transaction_whose_blocks_end_is_cancelled_is_rolled_back_after_what_is_under_way_in_it",
    ),
    Mutation(
        "a cancellation is forgotten when the call has ended",
        _BLOCKING_CALLS,
        "            raise cancelled",
        "            pass",
        _TRANSACTIONS + "test_a_commit_that_is_cancelled_goes_on_and_its_status_says_so",
    ),
    Mutation(
        "a call that raises what no future can tell is taken for one that returned",
        _BLOCKING_CALLS,
        '        raise RuntimeError(f"a call raised {error!r}") from error',
        "        return None  # type: ignore[return-value]",
        _CALLS + "test_what_a_call_raises_is_raised",
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
        "a thread is waited for without an end",
        _BLOCKING_CALLS,
        "        if not waiter.done():\n            waiter.set_exception(",
        "        if False:\n            waiter.set_exception(",
        _CALLS + "test_a_thread_is_waited_for_no_longer_than_may_be",
    ),
    Mutation(
        "a place that was given as its call was cancelled is lost",
        _BLOCKING_CALLS,
        "                self._give_place(party)  # it was given in the same moment",
        "                pass",
        _CALLS + "test_who_gives_a_place_up_leaves_it_to_the_next",
    ),
    Mutation(
        "calls that waited are made after the close",
        _BLOCKING_CALLS,
        "                self._require_open()\n                return await _made",
        "                return await _made",
        _CALLS + "test_nothing_is_made_after_the_close_and_what_has_begun_comes_to_its_end",
    ),
    Mutation(
        "a call is made after its caller was told that no thread can be had",
        _BLOCKING_CALLS,
        "    if not decided.acquire(blocking=False):\n        return",
        "    decided.acquire(blocking=False)",
        _CALLS + "test_a_call_for_which_no_thread_can_be_started_is_never_made",
    ),
    Mutation(
        "an error holds what its call was about",
        _BLOCKING_CALLS,
        "    del tell, ended, call  # as in",
        "    # as in",
        _CALLS + "test_who_fails_or_is_cancelled_leaves_nothing_behind_that_holds_what_it_was_about",
    ),
    Mutation(
        "a cancellation holds what its call was about",
        _BLOCKING_CALLS,
        "        del ended, cancelled  # as in ``_made``",
        "        pass",
        _CALLS + "test_who_fails_or_is_cancelled_leaves_nothing_behind_that_holds_what_it_was_about",
    ),
    Mutation(
        "half of a block commits whose end could not be",
        _TRANSACTION,
        "            with suppress(PythiaError):  # it has ended\n                self._transaction.forbid_commit(",
        "            with suppress(PythiaError):  # it has ended\n                str(",
        _TRANSACTIONS + "test_a_savepoints_block_whose_end_is_cancelled_forbids_the_commit",
    ),
    Mutation(
        "a block's own error is hidden by that of its end",
        _TRANSACTION,
        "            if not failed or not isinstance(",
        "            if True or not isinstance(",
        _TRANSACTIONS + "test_no_thread_to_end_a_transactions_block_with",
    ),
    Mutation(
        "a savepoint's block that another task undid ends as if nothing were",
        "client/transactions/savepoints.py",
        "savepoint) + 1, undone=True)",
        "savepoint) + 1, undone=False)",
        _TRANSACTIONS + "test_a_savepoints_block_that_somebody_else_undid_says_so",
    ),
    Mutation(
        "a begin that is cancelled is never rolled back",
        "client/asyncio_front/manager.py",
        "                for transaction in begun:",
        "                for transaction in begun[:0]:",
        _TRANSACTIONS + "test_a_begin_that_is_cancelled_is_rolled_back_and_the_hooks_are_told",
    ),
    Mutation(
        "what opens once opens twice",
        "client/asyncio_front/opening.py",
        "        opened, self._open = self._open, None",
        "        opened = self._open",
        _TRANSACTIONS + "test_what_opens_once_does_not_open_again",
    ),
    Mutation(
        "a scan that is left is closed on the event loop",
        "client/asyncio_front/streaming.py",
        "            calls.clean_up(rows.close)",
        "            rows.close()",
        _TRANSACTIONS + "test_a_scan_of_several_pieces_and_one_that_is_left",
    ),
    Mutation(
        "whoever asks for much has every thread that comes free",
        "client/asyncio_front/fair_line.py",
        "return known.held, known.last",
        "return 0, 0",
        "unit/client/asyncio_front/test_fair_line.py",
    ),
    Mutation(
        "a thread that comes free goes to somebody who waits no more",
        _BLOCKING_CALLS,
        "            if not waiter.done():\n                waiter.set_result(None)\n                return",
        "            if not waiter.done():\n                waiter.set_result(None)\n            return",
        _CALLS + "test_a_thread_that_comes_free_as_who_waited_for_it_is_cancelled_goes_to_the_next",
    ),
]
