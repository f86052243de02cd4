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
        "if any(manager.manifest.job_ends(transaction.start_timestamp).values()):",
        "if True:",
        "unit/client_spark/test_spark_reader_and_writer.py::"
        "test_a_transaction_is_read_without_its_own_writes_until_a_job_has_ended",
    ),
    Mutation(
        "a deleted row keeps what its mapping does not name",
        "client/spark/removal.py",
        "RowPut(key, tombstones(self._mapping, others)) for",
        "RowPut(key, tombstones(self._mapping)) for",
        "unit/client_spark/test_spark_removal.py::test_a_delete_takes_mapped_columns_and_whatever_else_is_there",
    ),
    Mutation(
        "a delete reads all its rows at once, however large they are",
        "client/spark/removal.py",
        "            size.came(len(some), value_bytes_of(stored.items()))",
        "            size.came(len(some), 0)",
        "unit/client_spark/test_spark_removal.py::test_a_delete_of_large_rows_reads_few_of_them_at_a_time",
    ),
    Mutation(
        "an overwrite puts what it deletes into one form, however many columns its rows have",
        "client/spark/removal.py",
        "for cells in in_pieces(_deletes(mapping, batch, kept)):",
        "for cells in [CellColumns.of_puts(list(_deletes(mapping, batch, kept)))]:",
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
]
