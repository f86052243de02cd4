"""Broken rules of the client: what a snapshot sees, what a reader asks, and how a transaction ends."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

CLIENT_RULES = [
    Mutation(
        "a commit right above the snapshot is visible",
        "client/visibility.py",
        "NOT_COMMITTED < outcome <= view.snapshot",
        "NOT_COMMITTED < outcome <= view.snapshot + 1",
        "unit/client/test_visibility.py::test_its_own_shadow_cell_settles_a_version",
    ),
    Mutation(
        "a commit at the snapshot is invisible",
        "client/visibility.py",
        "NOT_COMMITTED < outcome <= view.snapshot",
        "NOT_COMMITTED < outcome < view.snapshot",
        "unit/client/test_visibility.py::test_its_own_shadow_cell_settles_a_version",
    ),
    Mutation(
        "what an aborted transaction wrote is visible",
        "client/visibility.py",
        "NOT_COMMITTED < outcome <= view.snapshot",
        "NOT_COMMITTED <= outcome <= view.snapshot",
        "unit/client/test_visibility.py::test_its_own_shadow_cell_settles_a_version",
    ),
    Mutation(
        "own writes are invisible",
        "client/visibility.py",
        " or writer == view.own:",
        ":",
        "unit/client/test_visibility.py::test_own_versions_are_visible_without_any_outcome",
    ),
    Mutation(
        "own buffered writes are invisible",
        "client/write_buffer.py",
        "        if own is None:\n            return values",
        "        if True:\n            return values",
        "unit/client/test_transactions.py::test_a_transaction_reads_its_own_writes_and_nobody_else_does",
    ),
    Mutation(
        "a read stops short of the newest cell that it may see",
        "client/visibility.py",
        "return max(self.snapshot, self.own) + 1",
        "return self.snapshot + 1",
        "unit/client/test_bulk.py::test_several_jobs_and_plain_writes_land_together",
    ),
    Mutation(
        "a tombstone is read as a value",
        "client/cells.py",
        "return stored[1:] if len(stored) > 1 else None",
        "return stored[1:]",
        "unit/client/test_transactions.py::test_deletes_of_columns_and_rows",
    ),
    Mutation(
        "a value that looks like a tombstone is stored as it is",
        "client/cells.py",
        "return TOMBSTONE + value if value.startswith(TOMBSTONE) else value",
        "return value",
        "unit/client/test_transactions.py::test_every_value_survives",
    ),
    Mutation(
        "a reader does not fence a writer of an older epoch",
        "client/visibility.py",
        "return writer < self.epoch",
        "return False",
        "unit/client/test_reading.py::test_a_writer_of_an_older_epoch_that_was_not_committed_never_comes_to_be",
    ),
    Mutation(
        "a commit that came right before the fence is not believed",
        "client/resolver.py",
        "if isinstance(fenced, Committed):",
        "if False:",
        "unit/client/test_reading.py::test_a_commit_that_came_right_before_the_fence_is_found",
    ),
    Mutation(
        "the shadow cell is not read again after a fence",
        "client/resolver.py",
        "        shadow = self._read_shadow(writer, site)\n        return NOT_COMMITTED if shadow == OPEN else shadow",
        "        return NOT_COMMITTED",
        "unit/client/test_reading.py::test_a_commit_that_was_shadowed_and_vacuumed_between_the_questions_is_found",
    ),
    Mutation(
        "the shadow cell is not read again after the commit table",
        "client/resolver.py",
        "        shadow = self._read_shadow(writer, site)\n        if shadow != OPEN:\n            return shadow\n",
        "",
        "unit/client/test_reading.py::test_a_commit_of_the_own_epoch_that_was_vacuumed_before_the_question_is_found",
    ),
    Mutation(
        "the shadow cell of another transaction is believed when it is read again",
        "client/resolver.py",
        "if not versions or versions[0].timestamp != writer:",
        "if not versions:",
        "unit/client/test_reading.py::test_the_shadow_cell_of_another_writer_says_nothing_of_an_open_one",
    ),
    Mutation(
        "the shadow cell of another transaction is believed when it comes with the row",
        "client/visibility.py",
        "outcome = outcomes.get(writer)",
        "outcome = outcomes.get(writer, next(iter(outcomes.values()), None))",
        "unit/client/test_visibility.py::test_another_writers_shadow_cell_settles_nothing",
    ),
    Mutation(
        "an open transaction is remembered as aborted",
        "client/resolver.py",
        "            return NOT_COMMITTED  # not remembered",
        "            self._cache.remember(writer, NOT_COMMITTED)\n            return NOT_COMMITTED  # not remembered",
        "unit/client/test_reading.py::test_an_undecided_writer_of_the_own_epoch_is_not_fenced",
    ),
    Mutation(
        "a fenced transaction is remembered as aborted",
        "client/resolver.py",
        "        return NOT_COMMITTED if shadow == OPEN else shadow",
        "        self._cache.remember(writer, shadow := max(shadow, NOT_COMMITTED))\n        return shadow",
        "unit/client/test_reading.py::test_a_fenced_writer_that_commits_in_the_new_epoch_is_seen",
    ),
    Mutation(
        "a reader marks an open transaction as aborted",
        "client/visibility.py",
        "if outcome > NOT_COMMITTED:",
        "if outcome >= NOT_COMMITTED:",
        "unit/client/test_reading.py::test_an_undecided_writer_of_the_own_epoch_is_not_fenced",
    ),
    Mutation(
        "a shadow cell is healed with a wrong commit timestamp",
        "client/resolver.py",
        "for row, family in places), writer, commit_timestamp)",
        "for row, family in places), writer, writer)",
        "unit/client/test_reading.py::test_a_missing_shadow_cell_is_healed",
    ),
    Mutation(
        "a commit is judged by its start, not by its snapshot",
        "client/commit.py",
        "        handle.snapshot_timestamp,\n        keys,",
        "        handle.start_timestamp - 1,\n        keys,",
        "unit/client/test_transactions.py::test_a_commit_that_was_on_its_way_when_the_transaction_began_is_a_conflict",
    ),
    Mutation(
        "a commit whose answer was lost is taken for one that was never sent",
        "client/oracle.py",
        "            if lost:\n                raise lost[-1] from error\n",
        "",
        "unit/client/test_transactions.py::"
        "test_an_outcome_that_stays_unknown_is_said_at_the_deadline_and_settled_later",
    ),
    Mutation(
        "a transaction is marked aborted while its outcome is unknown",
        "client/commit.py",
        "    except (TransactionAborted, StoreError, NoPrimary, InvalidRequest) as error:",
        "    except (PythiaError, StoreError) as error:",
        "unit/client/test_transactions.py::"
        "test_an_outcome_that_stays_unknown_is_said_at_the_deadline_and_settled_later",
    ),
    Mutation(
        "a shared transaction is marked aborted without asking whether it committed",
        "client/commit.py",
        "_finish_through_oracle(services, start_timestamp, deadline) if shared else 0",
        "0",
        "unit/client/test_bulk.py::test_a_shared_transaction_that_cannot_be_settled_stays_unmarked",
    ),
    Mutation(
        "a shared transaction is rolled back without the oracle",
        "client/transaction.py",
        "        if self._shared or written:",
        "        if written:",
        "unit/client/test_bulk.py::test_a_shared_transaction_that_is_rolled_back_can_be_committed_by_nobody",
    ),
    Mutation(
        "a transaction of unknown outcome is rolled back without the oracle",
        "client/transaction.py",
        "        if self._shared or written:",
        "        if self._shared:",
        "unit/client/test_transactions.py::"
        "test_an_outcome_that_stays_unknown_is_said_at_the_deadline_and_settled_later",
    ),
    Mutation(
        "a bulk write that never ended may commit",
        "client/commit.py",
        "        if job.winners is None:\n",
        "        if job.winners is None:\n            continue\n",
        "unit/client/test_bulk.py::test_a_job_that_did_not_end_keeps_its_transaction_from_committing",
    ),
    Mutation(
        "rows that a repeated task did not repeat may commit",
        "client/commit.py",
        "        if unrepeated:",
        "        if False:",
        "unit/client/test_bulk.py::test_a_task_repeated_with_other_rows_is_found_out",
    ),
    Mutation(
        "bulk writes are left out of the write set",
        "client/commit.py",
        "    for rows_by_table in (dict(buffer.rows()), bulk):\n"
        "        for table, rows in rows_by_table.items():\n            keys",
        "    for rows_by_table in (dict(buffer.rows()),):\n"
        "        for table, rows in rows_by_table.items():\n            keys",
        "unit/client/test_bulk.py::test_bulk_writes_conflict_like_any_other",
    ),
    Mutation(
        "a bulk writer writes before it is on record",
        "client/bulk.py",
        "        self._sequence = self._manifest.record(",
        "        self._store.put(self._table, puts, self._start_timestamp)\n"
        "        self._sequence = self._manifest.record(",
        "unit/client/test_bulk.py::test_rows_are_on_record_before_any_of_them_is_written",
    ),
]
