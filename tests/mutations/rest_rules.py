"""Broken rules of REST: what a caller may lean on, and what others must not be able to spoil."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_TRANSACTIONS = "unit/rest/test_rest_transactions.py"
_BOUNDS = "unit/rest/test_rest_bounds.py"
_EXPIRY = "unit/rest/test_rest_expiry.py"

REST_RULES = [
    Mutation(
        "a body with two lengths is taken, and what follows it for a request",
        "rest/admission.py",
        'if b"content-length" in names and b"transfer-encoding" in names:',
        "if False:",
        f"{_BOUNDS}::test_after_a_request_of_two_lengths_nothing_more_is_taken_from_its_connection",
    ),
    Mutation(
        "of two values for one column of a body one is lost",
        "rest/bodies.py",
        "    if len(found) < len(pairs):\n",
        "    if False:\n",
        f"{_TRANSACTIONS}::test_what_is_said_twice_is_refused_and_nothing_is_done",
    ),
    Mutation(
        "of two spellings of one column in base64 one is lost",
        "rest/texts.py",
        "    if len(found) < len(values):\n",
        "    if False:\n",
        f"{_TRANSACTIONS}::test_what_is_said_twice_is_refused_and_nothing_is_done",
    ),
    Mutation(
        "of two values for one parameter of an address one is overlooked",
        "rest/routing.py",
        "        if repeated:\n",
        "        if False:\n",
        f"{_TRANSACTIONS}::test_what_is_said_twice_is_refused_and_nothing_is_done",
    ),
    Mutation(
        "a parameter that an operation does not have is overlooked, and it does something else",
        "rest/routing.py",
        "        if unknown:\n",
        "        if False:\n",
        f"{_TRANSACTIONS}::test_a_parameter_that_there_is_not_is_refused_and_nothing_is_done",
    ),
    Mutation(
        "two requests use one transaction at once",
        "rest/gateway.py",
        "        if held.busy:\n",
        "        if held.busy and held.settling:\n",
        f"{_TRANSACTIONS}::test_one_transaction_serves_one_request_at_a_time",
    ),
    Mutation(
        "a transaction that was lost is called so, and may commit later",
        "rest/gateway.py",
        "lambda: self._manager.abort(start_timestamp)",
        "lambda: self._manager.outcome(start_timestamp)",
        f"{_TRANSACTIONS}::test_a_transaction_of_a_process_that_was_started_anew_is_unknown_and_never_commits",
    ),
    Mutation(
        "half of a request's writes are taken",
        "rest/writes.py",
        "    with transaction.savepoint():\n",
        "    if transaction.is_open():\n",
        f"{_TRANSACTIONS}::test_many_writes_are_taken_all_or_none",
    ),
    Mutation(
        "what open transactions hold is not bounded",
        "rest/gateway.py",
        "self._bytes + size > self._limits.transactions_bytes_max",
        "size > self._limits.transactions_bytes_max",
        f"{_TRANSACTIONS}::test_what_is_held_is_bounded",
    ),
    Mutation(
        "what was refused keeps its room",
        "rest/gateway.py",
        "        self._book(held, held.transaction.written_bytes)\n",
        "",
        f"{_TRANSACTIONS}::test_what_was_refused_keeps_no_room",
    ),
    Mutation(
        "what was undone keeps its room",
        "rest/gateway.py",
        "        self._book(held, held.transaction.written_bytes)\n",
        "        self._book(held, max(held.booked_bytes, held.transaction.written_bytes))\n",
        f"{_TRANSACTIONS}::test_what_was_undone_keeps_no_room",
    ),
    Mutation(
        "a deleted row is booked as one cell, however many columns it has",
        "rest/gateway.py",
        "        self._book(held, held.transaction.written_bytes)\n",
        "        self._book(held, min(held.booked_bytes, held.transaction.written_bytes))\n",
        f"{_TRANSACTIONS}::test_a_deleted_row_takes_as_much_room_as_it_has_columns",
    ),
    Mutation(
        "what waits for a thread is written, however much those before it took",
        "rest/gateway.py",
        "            self._require_room(0)\n",
        "",
        "unit/rest/test_rest_room.py",
    ),
    Mutation(
        "a request waits for a thread for as long as others are slow",
        "rest/gateway.py",
        "BlockingCalls(limits.threads_max, limits.deadline_ms)",
        "BlockingCalls(limits.threads_max, 10**9)",
        f"{_BOUNDS}::test_who_finds_all_threads_busy_for_too_long_is_told_so_and_nothing_was_done",
    ),
    Mutation(
        "a transaction is dropped without its rollback where no thread is free",
        "rest/gateway.py",
        '            if failure.code == "overloaded":  # there was',
        "            if False:  # there was",
        _EXPIRY,
    ),
    Mutation(
        "anybody's probes take the oracle's answers from others",
        "rest/shared.py",
        "            return self._last[1]\n",
        "            pass\n",
        "unit/rest/test_shared.py",
    ),
    Mutation(
        "what is idle waits for what has to be settled",
        "rest/gateway.py",
        "        for start in plain:\n            await self._give_up(start)\n",
        "        for start in due:\n            await self._give_up(start)\n",
        _EXPIRY,
    ),
    Mutation(
        "all that has to be settled is waited for before anything else is looked at",
        "rest/gateway.py",
        "settling[:SETTLED_AT_ONCE_MAX]",
        "settling",
        _EXPIRY,
    ),
    Mutation(
        "an address that is no text is read as another row",
        "rest/admission.py",
        "                _check_text(scope)\n",
        "",
        f"{_TRANSACTIONS}::test_an_address_that_is_no_text_is_refused_and_not_read_as_another_row",
    ),
    Mutation(
        "a refusal for now is remembered for good",
        "rest/answering.py",
        "    if not problem.is_final():\n        raise problem\n",
        "",
        "unit/rest/test_rest_idempotency.py::test_a_refusal_for_now_is_not_remembered",
    ),
    Mutation(
        "an idempotency key gets the answer of another request",
        "rest/idempotency.py",
        "if entry.fingerprint != fingerprint:",
        "if entry.fingerprint == b'':",
        "unit/rest/test_rest_idempotency.py::test_a_key_is_not_for_two_requests",
    ),
    Mutation(
        "a standby begins transactions",
        "rest/services.py",
        "        if place.here:\n",
        "        if place.holder or place.here:\n",
        "unit/rest/test_rest_standby.py::test_a_standby_names_the_rest_of_the_primary",
    ),
    Mutation(
        "a transaction that is held is refused after a failover",
        "rest/table_routes.py",
        "    if not services.gateway.holds(int(id)):\n        services.require_primary()\n",
        "    services.require_primary()\n",
        "unit/rest/test_rest_standby.py::test_a_transaction_is_served_to_its_end_by_who_holds_it",
    ),
    Mutation(
        "the first head of a connection is waited for without end",
        "rest/doors.py",
        "            self._make_room()\n        self._await_head()\n",
        "            self._make_room()\n",
        f"{_BOUNDS}::test_the_longest_waiting_makes_room",
    ),
    Mutation(
        "a request that is not whole takes the place of one that is",
        "rest/admission.py",
        "                await body.read(scope, receive)\n                self._take_place(scope)\n",
        "                self._take_place(scope)\n                await body.read(scope, receive)\n",
        f"{_BOUNDS}::test_slow_bodies_take_no_place_of_whole_requests",
    ),
    Mutation(
        "one caller's keys push out those of others",
        "rest/idempotency.py",
        "sorted(self._shelves.values(), key=size, reverse=True)",
        "self._shelves.values()",
        "unit/rest/test_rest_idempotency.py",
    ),
]
