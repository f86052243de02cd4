"""Broken rules of the Spark data source: what is read for a filter, and what deletes and overwrites take with them."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

SPARK_RULES = [
    Mutation(
        "a column behind a range narrows the read as if it were held to one value",
        "client/spark/predicates.py",
        "if not all(_is_one_value(column, span) for span in allowed):",
        "if not allowed:",
        "unit/client_spark/test_spark_predicates.py::test_a_range_is_the_last_column_that_narrows",
    ),
    Mutation(
        "a filter that is answered in part only does not go back to Spark",
        "client/spark/predicates.py",
        "        if exact:\n            answered",
        "        if True:\n            answered",
        "unit/client_spark/test_spark_predicates.py::test_very_many_values_are_read_as_one_range_and_left_to_spark",
    ),
    Mutation(
        "a time of a filter is believed that Spark may have moved by days",
        "client/spark/predicates.py",
        "if first is not None and value < first:",
        "if False:",
        "unit/client_spark/test_spark_predicates.py::test_what_cannot_be_told_from_the_key_is_left_to_spark",
    ),
    Mutation(
        "a row is told by the asked columns alone",
        "client/spark/reader.py",
        "if demands_a_value(self._mapping, filters):",
        "if True:",
        "unit/client_spark/test_spark_reader_and_writer.py::"
        "test_single_cells_are_read_only_where_no_row_of_nulls_can_pass",
    ),
    Mutation(
        "a repeated task takes for its input what it wrote before",
        "client/spark/reader.py",
        "    if ended:\n        return transaction, ended\n",
        "    if True:\n        return transaction, ended\n",
        "unit/client_spark/test_spark_reader_and_writer.py::"
        "test_a_table_is_read_without_the_transactions_own_writes_until_a_job_that_wrote_into_it_has_ended",
    ),
    Mutation(
        "a job takes for its input what it wrote, once another table was written before",
        "client/bulk_writes/manifest.py",
        'elif kind == _ENTRY and cells[b"m:table"].value == table.encode():',
        "elif kind == _ENTRY:",
        "unit/client_spark/test_reading_what_is_written.py::"
        "test_a_table_that_no_earlier_job_wrote_is_read_as_it_was_whatever_the_job_has_written_into_it",
    ),
    Mutation(
        "a job takes for its input what it wrote, once the table was written before",
        "client/spark/reader.py",
        "            _require_own_writes_to_stand(manager, task, mapping.table)\n            yield cells\n",
        "            yield cells\n",
        "unit/client_spark/test_reading_what_is_written.py::"
        "test_no_batch_comes_of_a_read_that_the_job_has_caught_up_with",
    ),
    Mutation(
        "a read ends well that lacks what its job has deleted",
        "client/spark/reader.py",
        "        _require_own_writes_to_stand(manager, task, mapping.table)  # they",
        "        pass  # they",
        "unit/client_spark/test_reading_what_is_written.py::test_a_read_that_finds_nothing_any_more_is_refused_too",
    ),
    Mutation(
        "a read is half of before and half of after a job that ended meanwhile",
        "client/spark/reader.py",
        "if manager.manifest.is_written_by_others(view.start_timestamp, table, task.jobs):",
        "if not all(manager.manifest.jobs_into(view.start_timestamp, table).values()):",
        "unit/client_spark/test_reading_what_is_written.py::"
        "test_no_read_is_half_of_before_and_half_of_after_a_job_that_began_and_ended_meanwhile",
    ),
    Mutation(
        "a read that was planned while a job wrote shows what that job had written by then",
        "client/spark/reader.py",
        "options.table).items() if sealed\n",
        "options.table).items()\n",
        "unit/client_spark/test_reading_what_is_written.py::"
        "test_a_read_that_was_planned_while_a_job_wrote_does_not_take_what_it_wrote_for_the_whole",
    ),
    Mutation(
        "a look for later jobs passes over one that comes after many records of a known one",
        "client/bulk_writes/manifest.py",
        "start = START.pack(start_timestamp) + job.encode() + _AFTER_JOB",
        "start = stop",
        "unit/client_spark/test_reading_what_is_written.py::"
        "test_a_look_for_later_jobs_passes_over_what_known_ones_recorded_and_over_nothing_else",
    ),
    Mutation(
        "what was rolled back is read with the handle of its transaction",
        "client/spark/reader.py",
        "if isinstance(manager.commit_table.outcome(view.start_timestamp), Aborted):",
        "if False:",
        "unit/client_spark/test_reading_what_is_written.py::test_what_was_rolled_back_is_not_read",
    ),
    Mutation(
        "of two columns of a DataFrame with one name in the table the last one is written, and nobody told",
        "client/spark/mapping.py",
        "if len(names) > 1",
        "if len(names) > len(schema.fields)",
        "unit/client_spark/test_spark_mapping.py::test_two_columns_that_are_one_in_the_table_are_refused",
    ),
    Mutation(
        "a deleted row keeps what its mapping does not name",
        "client/spark/removal.py",
        "RowPut(key, tombstones(self._mapping, cells)) for",
        "RowPut(key, tombstones(self._mapping)) for",
        "unit/client_spark/test_spark_removal.py::test_a_delete_takes_mapped_columns_and_whatever_else_is_there",
    ),
    Mutation(
        "a delete takes rows with columns of their own twice, and some of these not",
        "client/spark/removal.py",
        "                del keys[key]\n",
        "                pass\n",
        "unit/client_spark/test_spark_removal.py::"
        "test_rows_with_columns_of_their_own_are_taken_by_themselves_and_none_is_left_out",
    ),
    Mutation(
        "a delete scans whatever lies between its rows",
        "client/spark/removal.py",
        "rows_met > ROWS_MET_FOR_EACH_MAX * passed or",
        "",
        "unit/client_spark/test_spark_removal.py::"
        "test_rows_that_lie_together_are_scanned_and_others_are_read_by_their_keys",
    ),
    Mutation(
        "a delete scans large rows that lie between its own",
        "client/spark/removal.py",
        " or bytes_met > BYTES_MET_FOR_EACH_MAX * passed:",
        ":",
        "unit/client_spark/test_spark_removal.py::test_large_rows_are_read_by_their_keys",
    ),
    Mutation(
        "a delete deletes the rows that it meets between its own",
        "client/spark/removal.py",
        "{key: cells for key, cells in rows if key in keys}",
        "{key: cells for key, cells in rows}",
        "unit/client_spark/test_spark_removal.py::"
        "test_rows_that_lie_together_are_scanned_and_others_are_read_by_their_keys",
    ),
    Mutation(
        "a delete that ends its scan leaves out the next of its rows",
        "client/spark/removal.py",
        "keys[passed:], families",
        "keys[passed + 1 :], families",
        "unit/client_spark/test_spark_removal.py::"
        "test_rows_that_lie_together_are_scanned_and_others_are_read_by_their_keys",
    ),
    Mutation(
        "many rows that are read at once come in one answer, however large they are",
        "store/hbase/adapter.py",
        "            size.came(len(piece), answer_bytes)\n",
        "            size.came(len(piece), 0)\n",
        "unit/store/test_answer_size.py::test_no_answer_of_large_rows_is_much_larger_than_wanted",
    ),
    Mutation(
        "an overwrite puts what it deletes into one form, however many columns its rows have",
        "client/spark/removal.py",
        "rows_max = max(1, PLACES_MAX // max(1, len(columns)))",
        "rows_max = max(1, cells.rows)",
        "unit/client_spark/test_spark_removal.py::"
        "test_rows_of_few_columns_are_deleted_in_bounded_pieces_where_many_are_mapped",
    ),
    Mutation(
        "an overwrite keeps a row that it did not write, since its key has the hash and the length of another's",
        "client/spark/kept_rows.py",
        "            if same == length:\n",
        "            if True:\n",
        "unit/client_spark/test_kept_rows.py::test_rows_of_one_hash_are_told_apart",
    ),
    Mutation(
        "an overwrite leaves cells that its mapping does not name in the rows that it keeps",
        "client/spark/removal.py",
        "cells.only(is_kept & (cells.value_lengths[others] != ABSENT).any(axis=0))",
        "cells.slice(0, 0)",
        "unit/client_spark/test_spark_removal.py::test_an_overwrite_deletes_what_it_did_not_write",
    ),
    Mutation(
        "an overwrite writes tombstones where a row that it keeps has no such cell",
        "client/spark/removal.py",
        "        lengths[len(always) :][~there] = ABSENT\n",
        "",
        "unit/client_spark/test_spark_removal.py::"
        "test_deletes_of_rows_with_columns_of_their_own_are_written_in_bounded_pieces",
    ),
    Mutation(
        "text that no read takes is written",
        "client/spark/key_codec.py",
        "    if is_utf8(array):\n",
        "    if True:\n",
        "unit/client_spark/test_spark_codecs.py::test_text_that_is_no_utf8_is_refused_before_it_is_written",
    ),
    Mutation(
        "what an overwrite deletes does not count",
        "client/spark/writer.py",
        "            winners.append(SWEEP)\n",
        "",
        "unit/client_spark/test_spark_reader_and_writer.py::test_an_overwrite_deletes_before_it_seals",
    ),
    Mutation(
        "what a process's first task has left over is kept for ever",
        "client/spark/collections_of_garbage.py",
        "    elif task != _first_task:",
        "    else:",
        "unit/client_spark/test_collections_of_garbage.py::test_the_first_task_leaves_all_to_the_collection_after_it",
    ),
    Mutation(
        "a program outside Spark is told what its collections leave out",
        "client/spark/collections_of_garbage.py",
        "    if _is_spared or context is None:\n        return\n    task = context.taskAttemptId()",
        "    if _is_spared:\n        return\n    task = object() if context is None else context.taskAttemptId()",
        "unit/client_spark/test_collections_of_garbage.py::test_a_driver_and_a_program_are_left_alone",
    ),
]
