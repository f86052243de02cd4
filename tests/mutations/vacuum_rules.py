"""Broken rules of the vacuum: what it may drop, and in which order."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_WROTE_LATE = (
    "unit/client/test_vacuum.py::"
    "test_what_a_forgotten_transaction_wrote_late_is_seen_by_nobody_and_goes_with_the_next_vacuum"
)

_COMMIT_ROWS = (
    "unit/client_vacuum/test_vacuum_sweep.py::"
    "test_commit_rows_go_up_to_the_first_that_is_kept_and_what_a_later_epoch_recorded_stays"
)

_DO_WITHOUT = "unit/client/test_vacuum.py::test_who_does_without_shadow_cells_is_read_after_a_vacuum_by_its_record"
_MILLISECOND = (
    "contract/test_commit_table.py::test_of_the_transactions_of_a_millisecond_only_the_records_that_last_stay"
)

_CLEAN = "unit/client_vacuum/test_clean_rows.py::"
_SWEEP = "unit/client_vacuum/test_vacuum_sweep.py::"
_SWEPT = "unit/client_vacuum/test_swept.py::"
_AFTER_VACUUM = _SWEEP + "test_vacuum_after_vacuum_leaves_what_one_leaves_that_goes_over_everything"
_EVERY_OTHER = _SWEPT + "test_every_other_row_is_looked_at"
_FAILED = "unit/client/test_vacuum.py::test_after_a_vacuum_that_failed_every_row_is_looked_at"

VACUUM_RULES = [
    Mutation(
        "a vacuum holds as many large rows as small ones",
        "client/vacuum/sweep.py",
        "stored_batches(rows, SWEEP_BATCH_ROWS, BATCH_BYTES_MAX)",
        "stored_batches(rows, SWEEP_BATCH_ROWS, 2**62)",
        "unit/client_vacuum/test_vacuum_sweep.py::test_a_vacuum_takes_few_large_rows_at_a_time",
    ),
    Mutation(
        "a vacuum takes a commit above the horizon for what every reader sees",
        "client/vacuum/plan.py",
        "return bool(self.versions) and NOT_COMMITTED < self.versions[-1].outcome <= self.horizon",
        "return bool(self.versions) and NOT_COMMITTED < self.versions[-1].outcome",
        "unit/client_vacuum/test_vacuum_sweep.py::test_every_snapshot_at_or_above_the_horizon_reads_the_same",
    ),
    Mutation(
        "a vacuum deletes what every reader sees together with what lies below",
        "client/vacuum/plan.py",
        "Removal(place, newest, lowest - 1)",
        "Removal(place, newest, lowest)",
        "unit/client_vacuum/test_vacuum_sweep.py::test_every_snapshot_at_or_above_the_horizon_reads_the_same",
    ),
    Mutation(
        "a vacuum deletes above the horizon, where the living write",
        "client/vacuum/plan.py",
        "return Removal(place, self.versions[0].writer, self.horizon)",
        "return Removal(place, self.versions[0].writer, 2 * self.horizon)",
        "unit/client_vacuum/test_vacuum_sweep.py::test_every_snapshot_at_or_above_the_horizon_reads_the_same",
    ),
    Mutation(
        "a vacuum drops shadow cells of versions that stay",
        "client/vacuum/plan.py",
        "bound = horizon + 1 if lowest_kept is None else lowest_kept",
        "bound = horizon + 1",
        "unit/client_vacuum/test_vacuum_sweep.py::test_every_snapshot_at_or_above_the_horizon_reads_the_same",
    ),
    Mutation(
        "a vacuum leaves missing shadow cells missing",
        "client/vacuum/sweep.py",
        "        self._heal()\n",
        "",
        "unit/client_vacuum/test_vacuum_sweep.py::test_every_snapshot_at_or_above_the_horizon_reads_the_same",
    ),
    Mutation(
        "a vacuum takes what it had aborted for aborted without a last look at the shadow cell",
        "client/vacuum/sweep.py",
        "return NOT_COMMITTED if shadow == OPEN else shadow",
        "return NOT_COMMITTED",
        "unit/client_vacuum/test_vacuum_sweep.py::"
        "test_a_commit_that_comes_before_the_abort_and_is_settled_by_another_vacuum_is_kept",
    ),
    Mutation(
        "a vacuum has a transaction aborted without a second look at the shadow cell",
        "client/vacuum/sweep.py",
        "        if shadow != OPEN:\n            return shadow\n",
        "",
        "unit/client_vacuum/test_vacuum_sweep.py::test_a_commit_that_another_vacuum_settles_between_two_looks_is_kept",
    ),
    Mutation(
        "a vacuum drops a row of the commit table of which only a part may go",
        "client/vacuum/plan.py",
        "return (self.outcomes + 1) >> COUNTER_BITS",
        "return (self.outcomes >> COUNTER_BITS) + 1",
        "unit/client_vacuum/test_vacuum_plan.py::"
        "test_a_row_of_the_commit_table_goes_only_when_all_of_its_millisecond_may",
    ),
    Mutation(
        "a vacuum drops commit-table rows although a table could not be read",
        "client/vacuum/run.py",
        "    if not report.problems:\n        _drop_finished",
        "    if True:\n        _drop_finished",
        "unit/client/test_vacuum.py::test_a_table_that_cannot_be_read_keeps_the_commit_table",
    ),
    Mutation(
        "a vacuum's mark does not keep those from committing that were given up",
        "client/vacuum/run.py",
        "    manager.store.put(manager.catalog.own_table, [RowPut(table.encode(), fence)], unique)",
        "    del fence",
        "unit/client/test_vacuum.py::test_one_that_was_given_up_never_commits_although_a_failover_would_let_it_live",
    ),
    Mutation(
        "a reader does not look at the vacuum mark after it read",
        "client/snapshots/reading.py",
        "        if moment < vacuumed:",
        "        if False:",
        "unit/client/test_vacuum.py::test_what_nobody_reads_goes_and_the_past_below_is_refused",
    ),
    Mutation(
        "a vacuum goes on in another epoch although its marks may have come too late",
        "client/vacuum/run.py",
        "if manager.oracle.status().epoch != status.epoch:",
        "if manager.oracle.status().epoch < status.epoch:",
        "unit/client/test_vacuum.py::test_a_failover_before_the_marks_stood_ends_the_vacuum",
    ),
    Mutation(
        "what a vacuum removed under a reader's eyes is taken for never committed",
        "client/snapshots/settler.py",
        "            if gone:\n                raise VacuumedMeanwhile(gone)\n",
        "",
        "unit/client/test_vacuum.py::test_a_vacuum_that_ends_in_the_middle_of_a_read_changes_nothing_of_it",
    ),
    Mutation(
        "a transaction whose record a vacuum dropped may be aborted",
        "commit_table/table.py",
        "            if start_timestamp < below:",
        "            if False:",
        "contract/test_commit_table.py::test_what_is_forgotten_is_not_aborted",
    ),
    Mutation(
        "a vacuum does not say how far the commit table is forgotten",
        "client/vacuum/run.py",
        "            manager.commit_table.forget_below(compose(limits.first_block_kept))",
        "            pass",
        "unit/client/test_vacuum.py::test_who_is_forgotten_is_aborted_by_nobody",
    ),
    Mutation(
        "an abort that is refused for good is told to be tried again",
        "tso/persistence/pipeline.py",
        "        if isinstance(found, Forgotten):",
        "        if False:",
        "unit/client/test_vacuum.py::test_who_is_forgotten_is_aborted_by_nobody",
    ),
    Mutation(
        "a commit that slept until its bulk writes were forgotten lands without them",
        "client/transactions/revalidation.py",
        "        if handle.start_timestamp < below:",
        "        if False:",
        "unit/client/test_vacuum.py::"
        "test_who_claimed_its_end_and_was_forgotten_does_not_commit_without_its_bulk_writes",
    ),
    Mutation(
        "a commit that may have been, and was forgotten, is told and marked as aborted",
        "client/transactions/commit.py",
        "        if uncertain:\n",
        "        if uncertain and not isinstance(error, Forgotten):\n",
        "unit/client/test_vacuum.py::"
        "test_a_commit_whose_answer_was_lost_and_whose_record_was_dropped_is_told_as_unknown_and_stays",
    ),
    Mutation(
        "a dry run of a vacuum aborts transactions",
        "client/vacuum/finished.py",
        "    if not isinstance(outcome, Committed) and has_written and not dry_run:",
        "    if not isinstance(outcome, Committed) and has_written:",
        "unit/client/test_vacuum.py::test_a_dry_run_ends_no_transaction",
    ),
    Mutation(
        "a vacuum has a forgotten transaction aborted, which is refused, and leaves its cells for ever",
        "client/vacuum/sweep.py",
        "        if writer >= self._commit_table.forgotten_below():",
        "        if True:",
        _WROTE_LATE,
    ),
    Mutation(
        "a vacuum has a forgotten bulk write aborted, which is refused, and drops no records any more",
        "client/vacuum/finished.py",
        "start_timestamp >= manager.commit_table.forgotten_below():",
        "start_timestamp > 0:",
        _WROTE_LATE,
    ),
    Mutation(
        "a vacuum drops the fences of tables that it did not mark",
        "client/vacuum/run.py",
        "lambda row, value: row in marked, sweeping",
        "lambda row, value: True, sweeping",
        "unit/client/test_vacuum.py::test_the_fences_of_a_table_that_was_dropped_stay_since_no_mark_stands_for_them",
    ),
    Mutation(
        "a vacuum's mark stands against writers who lived when it was set",
        "client/vacuum/run.py",
        "encode_shadow(horizon)}",
        "encode_shadow(unique)}",
        "unit/client/transactions/test_failover.py::test_a_vacuum_s_mark_stands_against_nobody_who_lived",
    ),
    Mutation(
        "a vacuum drops commit-table rows although bulk writes are on record yet",
        "client/vacuum/run.py",
        '        report.problems["manifest"] = str(error)\n        return\n',
        '        report.problems["manifest"] = str(error)\n',
        "unit/client/test_vacuum.py::test_records_of_bulk_writes_that_cannot_be_dropped_keep_the_commit_table",
    ),
    Mutation(
        "a vacuum says how far records are dropped once they are",
        "client/vacuum/run.py",
        "            manager.commit_table.forget_below(compose(limits.first_block_kept))\n"
        "        drop_commit_rows(manager.store, table_name(root), report, limits.first_block_kept, epoch, lasting)\n",
        "            pass\n"
        "        drop_commit_rows(manager.store, table_name(root), report, limits.first_block_kept, epoch, lasting)\n"
        "        if not report.dry_run:\n"
        "            manager.commit_table.forget_below(compose(limits.first_block_kept))\n",
        "unit/client/test_vacuum.py::test_how_far_records_go_is_on_record_before_the_first_goes",
    ),
    Mutation(
        "what a forgotten transaction wrote late keeps its row from being read",
        "client/snapshots/settler.py",
        "if writer < mark and writer not in vacuumed]",
        "if writer < mark]",
        _WROTE_LATE,
    ),
    Mutation(
        "a late task writes into a transaction that is forgotten",
        "client/bulk_writes/writing.py",
        "    if start_timestamp < below:",
        "    if False:",
        "unit/client/test_vacuum.py::test_a_late_task_of_a_transaction_that_committed_and_is_forgotten_writes_nothing",
    ),
    Mutation(
        "a vacuum drops what an oracle of a later epoch recorded",
        "client/vacuum/finished.py",
        "store.delete(table, whole, epoch)",
        "store.delete(table, whole, 2**62)",
        _COMMIT_ROWS,
    ),
    Mutation(
        "a vacuum drops one row of the commit table too many",
        "commit_table/layout.py",
        "prefix + _TIMESTAMP.pack(block))",
        "prefix + _TIMESTAMP.pack(block + 1))",
        "unit/commit_table/test_layout.py::test_the_rows_before_a_millisecond_are_those_of_all_before_it",
    ),
    Mutation(
        "a vacuum drops the records of transactions that it left without shadow cells",
        "client/vacuum/run.py",
        "first_block_kept, epoch, lasting)",
        "first_block_kept, epoch, ())",
        _DO_WITHOUT,
    ),
    Mutation(
        "a vacuum does not note whom it left without a shadow cell",
        "client/vacuum/sweep.py",
        "        self._need_records()\n",
        "",
        "unit/client_vacuum/test_vacuum_sweep.py::test_every_snapshot_at_or_above_the_horizon_reads_the_same",
    ),
    Mutation(
        "a vacuum takes one kept version of a row for the only one that needs a record",
        "client/vacuum/sweep.py",
        "set(past.kept())",
        "set(past.kept()[:1])",
        "unit/client_vacuum/test_vacuum_sweep.py::"
        "test_a_record_that_lasts_is_needed_below_a_version_that_only_later_snapshots_see",
    ),
    Mutation(
        "a vacuum leaves those without shadow cells who say so, though no record of them stays",
        "client/vacuum/sweep.py",
        "                if recorded.is_lasting:\n",
        "                if True:\n",
        "unit/client_vacuum/test_vacuum_sweep.py::test_nothing_that_could_go_stays",
    ),
    Mutation(
        "a vacuum lets any number of records last",
        "client/vacuum/sweep.py",
        "        if len(self._lasting) < self._lasting_records_max:\n",
        "        if True:\n",
        "unit/client/test_vacuum.py::test_those_that_do_without_shadow_cells_get_them_where_they_are_too_many",
    ),
    Mutation(
        "what goes of a row of the commit table in which a record lasts is all of it",
        "commit_table/layout.py",
        "return [column for column in row if _transaction_of(column) not in staying]",
        "return list(row)",
        _MILLISECOND,
    ),
    Mutation(
        "the mark of a record that lasts goes, and not the record",
        "commit_table/layout.py",
        "    if column.startswith(_LASTING):\n        return column[len(_LASTING) :]\n",
        "",
        _MILLISECOND,
    ),
    Mutation(
        "a vacuum takes a row for clean although there are older versions of its cells",
        "client/vacuum/sweep.py",
        "            found[[keys[key] for key in older.cells.row_keys() if key in keys]] = True\n",
        "            pass\n",
        _SWEEP + "test_nothing_that_could_go_stays",
    ),
    Mutation(
        "a vacuum takes a row for clean although a shadow cell is missing",
        "client/vacuum/clean_rows.py",
        "committed(batch, int(shadow)) | (without & ~is_there[shadow]), ~is_there[shadow])",
        "committed(batch, int(shadow)) | ~is_there[shadow], ~is_there[shadow])",
        _SWEEP + "test_nothing_that_could_go_stays",
    ),
    Mutation(
        "a vacuum leaves a shadow cell beside which there is nothing",
        "client/vacuum/clean_rows.py",
        "committed(batch, int(shadow)) | (without & ~is_there[shadow]), ~is_there[shadow])",
        "committed(batch, int(shadow)) | (without & ~is_there[shadow]), True)",
        _CLEAN + "test_every_other_row_is_looked_at",
    ),
    Mutation(
        "a vacuum takes a row of one who aborted for clean",
        "client/vacuum/clean_rows.py",
        "commits > ABORTED_SHADOW",
        "True",
        "unit/client_vacuum/test_clean_rows.py::test_every_other_row_is_looked_at",
    ),
    Mutation(
        "a vacuum takes a row that was deleted for clean",
        "client/vacuum/clean_rows.py",
        "    clean &= ~_may_be_tombstones(batch, of_value).any(axis=0)\n",
        "",
        _SWEEP + "test_nothing_that_could_go_stays",
    ),
    Mutation(
        "a vacuum takes a row for clean by the writer of some of its cells",
        "client/vacuum/clean_rows.py",
        "(~is_there | (timestamps == writers)).all(axis=0)",
        "(~is_there | (timestamps == writers)).any(axis=0)",
        _CLEAN + "test_every_other_row_is_looked_at",
    ),
    Mutation(
        "a vacuum takes a row for clean without a look at columns that it did not expect",
        "client/vacuum/clean_rows.py",
        "    clean[list(batch.others)] = False\n",
        "",
        _CLEAN + "test_every_other_row_is_looked_at",
    ),
    Mutation(
        "a vacuum passes over what committed after the horizon of the one before",
        "client/vacuum/plan.py",
        "return all(version.outcome <= self.horizon and version.outcome != OPEN for version in self.kept())",
        "return True",
        _AFTER_VACUUM,
    ),
    Mutation(
        "a vacuum forgets whose record is needed below a version that not all see",
        "client/vacuum/sweep.py",
        "                        self._sweeping.is_not_done_above(above.writer)\n",
        "                        pass\n",
        _SWEEP + "test_a_record_that_lasts_is_needed_below_several_that_not_all_see",
    ),
    Mutation(
        "a vacuum that goes less far than one before forgets whose record is needed below several versions",
        "client/vacuum/sweep.py",
        "self._sweeping.is_not_done_above(above.writer)",
        "self._sweeping.is_not_done_above(past.versions[0].writer)",
        _SWEEP + "test_a_record_that_lasts_is_needed_below_several_that_not_all_see",
    ),
    Mutation(
        "a vacuum says that it is done above what is not",
        "client/vacuum/swept.py",
        "min(self.through, newest - 1)",
        "min(self.through, newest)",
        _AFTER_VACUUM,
    ),
    Mutation(
        "a vacuum passes over rows that were written since the one before",
        "client/vacuum/swept.py",
        "(of_row > NOBODY) & (of_row <= before.through)",
        "of_row > NOBODY",
        _EVERY_OTHER,
    ),
    Mutation(
        "a vacuum passes over a row whose newest cell has no shadow cell",
        "client/vacuum/swept.py",
        "(~is_lacking | np.isin(newest, unshadowed))",
        "(newest >= NOBODY)",
        _EVERY_OTHER,
    ),
    Mutation(
        "a vacuum passes over cells in columns that it did not expect without a look at who wrote them",
        "client/vacuum/swept.py",
        "        for row, cells in batch.others.items()\n",
        "        for row, cells in ()\n",
        _EVERY_OTHER,
    ),
    Mutation(
        "a vacuum drops a record that lasts and that only rows need which it passes over",
        "client/vacuum/sweep.py",
        "        sweeping.unshadowed.update(found.needed)\n",
        "",
        _AFTER_VACUUM,
    ),
    Mutation(
        "a vacuum passes over cells below newer ones without a thought of the records that they need",
        "client/vacuum/swept.py",
        "passed[rows] & lasts & ~is_shown",
        "passed[rows] & lasts & (newest[sites] == writers) & ~is_shown",
        _SWEPT + "test_whoever_passes_over_cells_without_shadow_cells_needs_the_records",
    ),
    Mutation(
        "a vacuum passes over cells of those whose records it will not let last",
        "client/vacuum/swept.py",
        "    passed[rows[may_lack & ~np.isin(writers, needed)]] = False\n",
        "",
        _AFTER_VACUUM,
    ),
    Mutation(
        "a vacuum forgets whose record is needed below what was written late, and marked",
        "client/vacuum/swept.py",
        "~is_shown | ~_commits_shown(batch, families)[sites]",
        "~is_shown",
        _SWEEP + "test_a_record_that_lasts_is_needed_below_what_came_late",
    ),
    Mutation(
        "a vacuum forgets whose record is needed below what was written late beside another column",
        "client/vacuum/swept.py",
        "~is_shown | ~_commits_shown(batch, families)[sites]",
        "~_commits_shown(batch, families)[sites]",
        _SWEEP + "test_a_record_that_lasts_is_needed_below_what_came_late",
    ),
    Mutation(
        "a task sweeps another part than its own",
        "client/spark/sweeping.py",
        "[parts[number]]",
        "[parts[0]]",
        "unit/client_spark/test_task_ranges.py::test_a_task_sweeps_its_part_and_tells_what_it_came_to",
    ),
    Mutation(
        "the tasks of a vacuum do not know what was left before",
        "client/spark/sweeping.py",
        "replace(part, key_range=key_range)",
        "Part(part.table, part.families, part.plain_through, key_range=key_range)",
        "unit/client_spark/test_task_ranges.py::"
        "test_a_vacuum_sweeps_every_region_by_itself_and_knows_what_was_left_of_the_table",
    ),
    Mutation(
        "a vacuum sends any number of requests at once",
        "client/vacuum/sweep.py",
        "at_once = min(self._reads_at_once, len(requests))",
        "at_once = len(requests)",
        _SWEEP + "test_so_many_requests_wait_for_the_store_at_a_time",
    ),
    Mutation(
        "a vacuum takes the answers of several requests for one another's",
        "client/vacuum/sweep.py",
        "zip(wanted.values(), answers, strict=True)",
        "zip(wanted.values(), answers[::-1], strict=True)",
        _AFTER_VACUUM,
    ),
    Mutation(
        "of a table in parts a vacuum says what is true of the best of them",
        "client/vacuum/swept.py",
        "min(self.through, other.through)",
        "max(self.through, other.through)",
        _SWEPT + "test_of_parts_the_least_is_true_and_all_records_are_needed",
    ),
    Mutation(
        "what a newer release left on record is guessed at",
        "client/vacuum/swept.py",
        "            return NOT_SWEPT\n",
        "            pass\n",
        "unit/client/test_vacuum.py::test_what_a_newer_release_left_on_record_is_no_reason_to_pass_over_a_row",
    ),
    Mutation(
        "a vacuum that could not read a table puts on record what it left of it",
        "client/vacuum/run.py",
        "if table not in report.problems and not orders.dry_run:",
        "if not orders.dry_run:",
        _FAILED,
    ),
    Mutation(
        "a vacuum that changes nothing puts on record what it left",
        "client/vacuum/run.py",
        "if table not in report.problems and not orders.dry_run:",
        "if table not in report.problems:",
        _FAILED,
    ),
    Mutation(
        "a vacuum of everything passes over rows",
        "client/vacuum/run.py",
        "before = {} if everything else manager.catalog.vacuums.swept()",
        "before = manager.catalog.vacuums.swept()",
        "unit/client/test_vacuum.py::test_a_row_that_nobody_wrote_since_a_vacuum_is_passed_over_by_the_next",
    ),
    Mutation(
        "a vacuum drops a record that lasts and that only rows need which it takes for clean",
        "client/vacuum/sweep.py",
        "            if (clean & rows & (found.lacking > 0)).any():\n",
        "            if False:\n",
        _SWEEP + "test_a_record_that_lasts_is_needed_by_a_row_that_is_clean",
    ),
    Mutation(
        "a vacuum writes the shadow cells of who does without, where some of his rows have theirs",
        "client/vacuum/sweep.py",
        "        self._sweep.look_who_lasts({",
        "        dict({",
        _AFTER_VACUUM,
    ),
]
