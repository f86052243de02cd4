"""Broken rules of what changed: each row that is different, no other one, and nothing that a vacuum may have taken."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_CHANGES = "unit/client/snapshots/test_changes.py::"
_MODEL = _CHANGES + "test_changes_on_top_of_the_earlier_snapshot_are_the_later_one"
_SPARK = "unit/client_spark/test_changes_into_spark.py::"
_CORE = "client/snapshots/changes.py"
_SOURCE = "client/spark/changes.py"
_COLUMNS = "client/spark/change_columns.py"
_FILES = "client/tables/change_files.py"
_LANDING = "unit/client_tables/test_table_landing.py::"

CHANGES_RULES = [
    Mutation(
        "what had committed at the earlier moment has changed since, in columns",
        _CORE,
        "        keep = newest > since\n",
        "        keep = newest >= since\n",
        _CHANGES + "test_a_row_without_values_is_there_and_a_value_that_looks_like_a_tombstone_is_one",
    ),
    Mutation(
        "what had committed at the earlier moment has changed since, row by row",
        _CORE,
        "return each.commit_timestamp > since and",
        "return each.commit_timestamp >= since and",
        _CHANGES + "test_a_row_without_values_is_there_and_a_value_that_looks_like_a_tombstone_is_one",
    ),
    Mutation(
        "of what changed in a row only the last column counts",
        "client/snapshots/column_visibility.py",
        "            newest[row] = max(newest[row], commit)\n",
        "            newest[row] = commit\n",
        _MODEL,
    ),
    Mutation(
        "of what changed in a row only the last version that was looked for counts",
        _CORE,
        "            newest[row] = max(newest[row], *commits, NOT_COMMITTED)\n",
        "            newest[row] = max(*commits, NOT_COMMITTED)\n",
        _MODEL,
    ),
    Mutation(
        "rows that are gone are no changes, in columns",
        _CORE,
        "        if since == SINCE_THE_BEGINNING:\n            keep &= ~deleted\n",
        "        keep &= ~deleted\n",
        _MODEL,
    ),
    Mutation(
        "rows that are gone are no changes, row by row",
        _CORE,
        "(each.values is not None or since != SINCE_THE_BEGINNING)",
        "each.values is not None",
        _MODEL,
    ),
    Mutation(
        "since the beginning rows have gone that no copy ever had, in columns",
        _CORE,
        "            keep &= ~deleted\n",
        "            pass\n",
        _MODEL,
    ),
    Mutation(
        "since the beginning rows have gone that no copy ever had, row by row",
        _CORE,
        "(each.values is not None or since != SINCE_THE_BEGINNING)",
        "True",
        _MODEL,
    ),
    Mutation(
        "what changed in columns that nobody names is overlooked",
        _CORE,
        "(all_columns and newest[row] > since) or self._may_have_changed(table, others, since)",
        "False",
        _MODEL,
    ),
    Mutation(
        "of a row that changed in a column that was expected the others are left out",
        _CORE,
        "(all_columns and newest[row] > since) or self._may",
        "self._may",
        _CHANGES + "test_of_a_row_that_changed_all_columns_come_where_all_are_asked_for",
    ),
    Mutation(
        "a row is gone of which columns are left that nobody names",
        _CORE,
        "            if states[row] == EMPTY\n            or (\n",
        "            if (\n",
        _CHANGES + "test_a_row_is_there_as_long_as_it_has_a_column_that_nobody_names",
    ),
    Mutation(
        "a row is overlooked whose newest cell is not visible",
        _CORE,
        "for row in np.flatnonzero(states == HIDDEN)]",
        "for row in np.flatnonzero(states == HIDDEN)[:0]]",
        _MODEL,
    ),
    Mutation(
        "changes are shown since a moment of which a vacuum has dropped something",
        _CORE,
        "        if since != SINCE_THE_BEGINNING:\n",
        "        if False:\n",
        _CHANGES + "test_what_an_earlier_snapshot_saw_may_be_gone",
    ),
    Mutation(
        "changes are asked for since a moment that is later",
        "client/snapshots/changed_rows.py",
        "    if since > until:\n",
        "    if False:\n",
        _SPARK + "test_what_a_batch_cannot_be_told",
    ),
    Mutation(
        "what a vacuum changed while changes were read fails the read",
        _CORE,
        "            except VacuumedMeanwhile:\n",
        "            except ZeroDivisionError:\n",
        "unit/client/test_vacuum.py::test_a_vacuum_that_ends_in_the_middle_of_a_read_changes_nothing_of_it",
    ),
    Mutation(
        "rows to put are to be deleted, and the other way round",
        _COLUMNS,
        "        types = pa.array([UPSERT, DELETE])",
        "        types = pa.array([DELETE, UPSERT])",
        _SPARK + "test_a_batch_has_what_changed_with_what_is_to_be_done",
    ),
    Mutation(
        "a batch that Spark repeats has what was committed since",
        _SOURCE,
        "kept = self._kept.get(until) or manager_for(self._options.settings).snapshot(at=until)",
        "kept = self._kept.get(until) or manager_for(self._options.settings).snapshot()",
        _SPARK + "test_after_a_restart_a_batch_is_what_it_was_and_the_rest_comes_with_the_next",
    ),
    Mutation(
        "a stream reads the whole table as often as it can",
        _SOURCE,
        "time.monotonic() - self._offered_s >= interval_s",
        "time.monotonic() - self._offered_s >= 0",
        _SPARK + "test_between_two_batches_lies_the_interval",
    ),
    Mutation(
        "a query that takes what there is never comes to its end",
        _SOURCE,
        "        self._is_last = True\n",
        "",
        _SPARK + "test_a_query_that_takes_what_there_is_stops_where_it_was_told_to",
    ),
    Mutation(
        "a stream lets go of the snapshot at which its next batch begins",
        _SOURCE,
        "if timestamp >= until}",
        "if timestamp > until}",
        _SPARK + "test_snapshots_are_held_for_as_long_as_a_batch_begins_or_ends_there",
    ),
    Mutation(
        "a stream holds every snapshot that it ever took",
        _SOURCE,
        "if timestamp >= until}",
        "if timestamp >= 0}",
        _SPARK + "test_snapshots_are_held_for_as_long_as_a_batch_begins_or_ends_there",
    ),
    Mutation(
        "a name that a stream moves along is not where its batch begins",
        _SOURCE,
        "        self._name_position(until if since == SINCE_THE_BEGINNING else since)\n",
        "",
        _SPARK + "test_a_name_goes_where_the_next_batch_begins_and_stays_there_while_nothing_runs",
    ),
    Mutation(
        "a name that a stream moves along is where its batch ends",
        _SOURCE,
        "        self._name_position(until if since == SINCE_THE_BEGINNING else since)\n",
        "        self._name_position(until)\n",
        _SPARK + "test_a_name_goes_where_the_next_batch_begins_and_stays_there_while_nothing_runs",
    ),
    Mutation(
        "a name that a stream moves along stays behind what is done",
        _SOURCE,
        "        self._name_position(until)\n",
        "",
        _SPARK + "test_a_name_goes_where_the_next_batch_begins_and_stays_there_while_nothing_runs",
    ),
    Mutation(
        "what a transaction wrote itself is read as a change",
        _SOURCE,
        "        if not isinstance(view, SnapshotHandle):\n",
        "        if isinstance(view, ZeroDivisionError):\n",
        _SPARK + "test_what_a_transaction_wrote_itself_is_no_change",
    ),
    Mutation(
        "a filter on the row key narrows no read of changes, and Spark is told that it did",
        _SOURCE,
        "        self._wanted = planned.ranges\n",
        "",
        _SPARK + "test_filters_on_the_row_key_narrow_what_is_looked_at_and_no_others_do",
    ),
    Mutation(
        "a table's own column is taken for the one that says what changed",
        _COLUMNS,
        "    if taken:\n",
        "    if False:\n",
        _SPARK + "test_a_table_that_has_a_column_of_that_name_is_refused",
    ),
    Mutation(
        "an export of what has changed has all rows",
        "client/tables/exporting.py",
        "    if since is None:\n",
        "    if since is None or True:\n",
        "unit/client_tables/test_table_commands.py::test_an_export_may_be_of_what_has_changed",
    ),
    Mutation(
        "the offset of another source is taken for the beginning",
        _SOURCE,
        "    if type(timestamp) is not int:\n",
        "    if timestamp is None:\n        return 0\n    if type(timestamp) is not int:\n",
        _SPARK + "test_the_offset_of_another_source_is_refused",
    ),
    Mutation(
        "an import of what has changed deletes nothing",
        _FILES,
        "        if gone.num_rows:\n",
        "        if False:\n",
        _LANDING + "test_a_file_that_says_what_changed_puts_and_deletes",
    ),
    Mutation(
        "an import of what has changed puts what is gone",
        _FILES,
        "put, gone = rows.filter(pc.invert(is_gone)), rows.filter(is_gone)",
        "put, gone = rows, rows.filter(is_gone)",
        _LANDING + "test_a_file_that_says_what_changed_puts_and_deletes",
    ),
    Mutation(
        "a row of which nobody says what is to be done with it is put",
        _FILES,
        "    if not pc.all(known, min_count=0).as_py():\n",
        "    if False:\n",
        _LANDING + "test_a_row_that_does_not_say_what_is_to_be_done_with_it_is_refused",
    ),
    Mutation(
        "a file that does not say what changed is imported as one that does",
        "client/tables/casting.py",
        "    if changes and not _is_text(",
        "    if False and not _is_text(",
        _LANDING + "test_a_file_is_read_as_what_changed_only_where_it_is_asked_for_and_says_so",
    ),
    Mutation(
        "a page of changes is told without a look at what was vacuumed meanwhile",
        _CORE,
        "            self._require_both_shown(table, since)\n            cells =",
        "            cells =",
        _CHANGES + "test_a_page_is_told_only_where_nothing_of_it_was_vacuumed_meanwhile",
    ),
    Mutation(
        "REST tells the changes of another page than it was asked for",
        "rest/table_routes.py",
        "            earlier,\n            start=start,\n",
        "            earlier,\n",
        "unit/rest/test_rest_transactions.py::test_what_changed_since_a_moment_is_listed_a_page_at_a_time",
    ),
]
