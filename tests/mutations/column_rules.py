"""Broken rules of what goes as columns: which cells are seen, what a null is, what a commit takes from the record."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_READING = "unit/client/snapshots/test_reading.py::"
_SHADOW_PASS = "unit/client/bulk_writes/test_shadow_pass.py::"
_DO_WITHOUT = _SHADOW_PASS + "test_a_bulk_write_may_do_without_shadow_cells"
_LASTING_READ = (
    "unit/client/snapshots/test_reading.py::test_where_the_record_lasts_no_shadow_cell_is_written_by_readers"
)
_CODECS = "unit/client_spark/test_spark_codecs.py::"

COLUMN_RULES = [
    Mutation(
        "a row whose newest cell is not visible is shown by columns",
        "client/snapshots/column_visibility.py",
        "            if not last_seen:\n",
        "            if False:\n",
        _READING + "test_a_reader_sees_what_the_model_says",
    ),
    Mutation(
        "columns are shown of which one is named twice",
        "client/snapshots/snapshot.py",
        "    if len(set(known)) < len(known):",
        "    if False:",
        "unit/client/transactions/test_refusals.py::test_columns_that_a_scan_cannot_show_are_refused",
    ),
    Mutation(
        "a tombstone is a value in columns",
        "client/snapshots/column_visibility.py",
        "                if length == 1:\n",
        "                if length == 0:\n",
        _READING + "test_a_reader_sees_what_the_model_says",
    ),
    Mutation(
        "columns show what committed after the snapshot",
        "client/snapshots/column_visibility.py",
        "    return NOT_COMMITTED < outcome <= view.snapshot or",
        "    return NOT_COMMITTED < outcome or",
        _READING + "test_columns_do_not_show_what_committed_after_the_snapshot",
    ),
    Mutation(
        "a scan as columns does not look at the vacuum's mark",
        "client/snapshots/reading.py",
        "        self._require_shown(table)\n        yield from (each for each in shown if each.rows)",
        "        yield from (each for each in shown if each.rows)",
        _READING + "test_a_scan_as_columns_below_the_mark_is_refused_before_it_shows_anything",
    ),
    Mutation(
        "a scan of all columns leaves out those that it did not expect",
        "client/snapshots/all_columns.py",
        "        piece.value_starts[places], piece.value_lengths[places] = starts[few], lengths[few]\n",
        "",
        _READING + "test_few_rows_with_other_columns_are_no_reason_to_begin_anew",
    ),
    Mutation(
        "a scan of all columns shows a row twice where it begins anew",
        "client/snapshots/all_columns.py",
        'batch.cells.row_key(-1) + b"\\x00"',
        "batch.cells.row_key(-1)",
        _READING + "test_a_scan_of_all_columns_goes_on_expecting_what_it_has_met",
    ),
    Mutation(
        "a scan of all columns expects as many as there are",
        "client/snapshots/all_columns.py",
        "new[: EXPECTED_COLUMNS_MAX - len(self._met)]",
        "new",
        _READING + "test_where_every_row_has_columns_of_its_own_few_are_expected",
    ),
    Mutation(
        "a scan of all columns makes one piece of a batch, however many different columns its rows have",
        "client/snapshots/all_columns.py",
        "if last - first > 1 and len(columns) * (last - first) > PLACES_MAX:",
        "if False:",
        _READING + "test_where_every_row_has_columns_of_its_own_few_are_expected",
    ),
    Mutation(
        "a scan that takes shadow cells along begins once more",
        "client/snapshots/column_scans.py",
        "rest = KeyRange(batch.cells.row_key(0), key_range.stop)",
        "pass",
        _READING + "test_from_where_many_wrote_on_the_shadow_cells_come_along",
    ),
    Mutation(
        "as many writers as there are get asked for",
        "client/snapshots/column_scans.py",
        "if unknown and asked_for <= WRITERS_ASKED_FOR_MAX:",
        "if unknown:",
        _READING + "test_from_where_many_wrote_on_the_shadow_cells_come_along",
    ),
    Mutation(
        "a shadow cell that a scan left where it is counts as missing",
        "client/snapshots/reading.py",
        "self._settler.settled(table, rows, outcomes, heal=False)",
        "self._settler.settled(table, rows, outcomes)",
        _READING + "test_columns_heal_nothing",
    ),
    Mutation(
        "who is on no record after a scan without shadow cells counts as aborted",
        "client/snapshots/column_scans.py",
        "                if OPEN in outcomes.values():\n",
        "                if asked_for > WRITERS_ASKED_FOR_MAX:\n",
        _READING + "test_a_writer_of_whom_a_vacuum_took_the_record_meanwhile_is_not_taken_for_aborted",
    ),
    Mutation(
        "writers in columns that nobody asked for are not counted",
        "client/snapshots/column_scans.py",
        "return {*writers_of(batch, looked_at), *others}",
        "return {*writers_of(batch, looked_at)}",
        _READING + "test_columns_that_nobody_asked_for_have_writers_too",
    ),
    Mutation(
        "the record of a bulk write goes although shadow cells are missing",
        "client/bulk_writes/shadow_pass.py",
        "            while under_way:\n                under_way.popleft().result()\n",
        "            while under_way:\n                under_way.popleft().exception()\n",
        _SHADOW_PASS + "test_a_shadow_pass_that_broke_off_is_taken_up_again",
    ),
    Mutation(
        "the record of a bulk write without shadow cells is not said to last",
        "client/transactions/commit.py",
        "        services.commit_table.let_last(start_timestamp)\n",
        "",
        _DO_WITHOUT,
    ),
    Mutation(
        "who does without shadow cells is forgotten before its record is said to last",
        "client/transactions/commit.py",
        "        services.commit_table.let_last(start_timestamp)\n"
        "        services.cache.remember(start_timestamp, commit_timestamp, is_lasting=True)\n"
        "        services.manifest.forget(start_timestamp)\n",
        "        services.manifest.forget(start_timestamp)\n"
        "        services.commit_table.let_last(start_timestamp)\n"
        "        services.cache.remember(start_timestamp, commit_timestamp, is_lasting=True)\n",
        _DO_WITHOUT,
    ),
    Mutation(
        "who wrote nothing in bulk has a record that lasts",
        "client/transactions/commit.py",
        "    if services.manifest.job_ends(start_timestamp):\n",
        "    if start_timestamp:\n",
        _SHADOW_PASS + "test_who_wrote_nothing_in_bulk_has_no_record_that_lasts",
    ),
    Mutation(
        "shadow cells that nobody needs are written by who comes by",
        "client/manager.py",
        "if isinstance(outcome, Committed) and outcome.is_lasting:",
        "if False:",
        _DO_WITHOUT,
    ),
    Mutation(
        "readers write the shadow cells that a bulk write did without",
        "client/snapshots/resolver.py",
        "if self._cache.is_lasting(writer) or writer",
        "if writer",
        _LASTING_READ,
    ),
    Mutation(
        "who learns of a commit as it fences does not learn that its record lasts",
        "client/snapshots/resolver.py",
        "            return self._remember_commit(writer, fenced)\n",
        "            self._cache.remember(writer, fenced.commit_timestamp)\n"
        "            return fenced.commit_timestamp\n",
        _LASTING_READ,
    ),
    Mutation(
        "it is remembered without end whose records last",
        "client/snapshots/resolver.py",
        "                self._lasting.discard(dropped)\n",
        "",
        "unit/client/snapshots/test_reading.py::"
        "test_of_whom_nothing_is_remembered_it_is_not_remembered_either_that_the_record_lasts",
    ),
    Mutation(
        "a record lasts on past the level its program knows",
        "client/transactions/commit.py",
        "    services.catalog.require_level()\n    if services.manifest.job_ends",
        "    if services.manifest.job_ends",
        "unit/client/test_levels.py::test_a_record_is_said_to_last_only_as_long_as_its_format_is_the_installations",
    ),
    Mutation(
        "rows that are put in order keep the places of others' cells",
        "store/columns.py",
        "self.value_starts[:, indexes],",
        "self.value_starts,",
        "unit/store/test_key_order.py::test_every_row_keeps_its_cells",
    ),
    Mutation(
        "the shadow cells of several pieces are written to rows of the first",
        "client/bulk_writes/shadow_pass.py",
        "[piece.starts + offset for",
        "[piece.starts for",
        _SHADOW_PASS + "test_pieces_go_together_in_the_order_of_their_rows_as_far_as_the_limits_let_them",
    ),
    Mutation(
        "the shadow cells of two tables go together",
        "client/bulk_writes/shadow_pass.py",
        " or _kind(piece) != _kind(held[0])",
        "",
        _SHADOW_PASS + "test_pieces_go_together_in_the_order_of_their_rows_as_far_as_the_limits_let_them",
    ),
    Mutation(
        "shadow cells are put in order without a limit",
        "client/bulk_writes/shadow_pass.py",
        "held_bytes + piece_bytes > TOGETHER_BYTES_MAX or ",
        "",
        _SHADOW_PASS + "test_pieces_go_together_in_the_order_of_their_rows_as_far_as_the_limits_let_them",
    ),
    Mutation(
        "conflict keys of another conflict level are taken",
        "client/transactions/commit.py",
        "                if levels != {guards.entry(table).conflict_level}:\n",
        "                if not levels:\n",
        "unit/client/bulk_writes/test_bulk.py::test_a_table_that_was_made_anew_with_another_conflict_level_takes_no_commit",
    ),
    Mutation(
        "a table that was dropped keeps the shadow cells of all others from being finished",
        "client/bulk_writes/shadow_pass.py",
        "with suppress(TableMissing):",
        "with suppress():",
        _SHADOW_PASS + "test_the_shadow_cells_of_a_table_that_was_dropped_are_no_longer_owed",
    ),
    Mutation(
        "an older value shines through a null",
        "client/spark/codecs.py",
        "        if nulls.any():\n",
        "        if False:\n",
        _CODECS + "test_a_null_is_a_tombstone_and_a_row_of_nulls_has_a_marker",
    ),
    Mutation(
        "a row of nothing but nulls does not exist",
        "client/spark/codecs.py",
        "            if empty.any():\n",
        "            if False:\n",
        _CODECS + "test_a_null_is_a_tombstone_and_a_row_of_nulls_has_a_marker",
    ),
    Mutation(
        "batches that are gathered lose the place of their rows",
        "store/columns.py",
        "np.hstack([each.value_starts + before for each, before in zip(cells, data_before, strict=True)]),",
        "np.hstack([each.value_starts for each in cells]),",
        "contract/test_cell_columns.py::test_batches_that_are_gathered_have_the_same_rows",
    ),
    Mutation(
        "rows with columns of their own are put into one form, however many",
        "store/columns.py",
        "if together and (len(together) + 1) * (len(columns) + len(further)) > PLACES_MAX:",
        "if False:",
        "contract/test_cell_columns.py::test_rows_in_pieces_are_the_same_rows",
    ),
]
