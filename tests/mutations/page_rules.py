"""Broken rules of pages and of rows by their keys: each row comes once, for no more work than was asked for."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_PAGES = "unit/client/snapshots/test_pages.py::"
_EVERY_ROW = _PAGES + "test_page_by_page_comes_every_row_once_and_no_page_is_more_than_was_asked_for"
_ENDS = _PAGES + "test_a_page_of_rows_ends_at_its_rows_its_bytes_and_after_so_many_rows_looked_at"
_BY_COLUMNS = _PAGES + "test_a_page_that_goes_on_by_columns_misses_nothing_and_says_nothing_twice"
_OWN = _PAGES + "test_the_pages_of_a_transaction_are_its_scan_with_its_own_writes"
_TOGETHER = "unit/client/transactions/test_transactions.py::test_rows_are_read_together_with_what_the_transaction_wrote"
_CORE = "client/snapshots/pages.py"

PAGE_RULES = [
    Mutation(
        "a page that looked at its share of the rows is the last one",
        _CORE,
        "            return rows, looked_at_to\n",
        "            return rows, None\n",
        _EVERY_ROW,
    ),
    Mutation(
        "a page that is full ends behind rows that it has left out",
        _CORE,
        "return rows, looked_at_to if was_full else rows[-1][0]",
        "return rows, batch.last_row",
        _EVERY_ROW,
    ),
    Mutation(
        "for a page in which nothing is found the whole table is looked at",
        _CORE,
        "looked_at >= limits.looked_at",
        "rows and looked_at >= limits.looked_at",
        _ENDS,
    ),
    Mutation(
        "behind a full page it is looked on until there is a row",
        _CORE,
        "if was_full or looked_at",
        "if looked_at",
        _PAGES + "test_a_full_page_looks_on_for_one_batch_at_most_and_says_how_far",
    ),
    Mutation(
        "a page that is full is never known to be the last one",
        _CORE,
        "if was_full or looked_at",
        "if is_full or looked_at",
        _PAGES + "test_a_full_page_is_the_last_one_where_there_is_nothing_behind_it",
    ),
    Mutation(
        "a page holds rows however large they are",
        _CORE,
        " or rows_bytes > limits.bytes",
        "",
        _ENDS,
    ),
    Mutation(
        "own writes behind what a page has looked at hide the rows before them",
        "client/transactions/transaction.py",
        "looked_at, stored.rows",
        "chosen, stored.rows",
        _OWN,
    ),
    Mutation(
        "a page with own writes has as many rows as there are of both",
        "client/transactions/transaction.py",
        "return stored.with_rows(((row, without_reserved(values)) for row, values in rows), limits)",
        "return RowsPage([(row, without_reserved(values)) for row, values in rows], stored.looked_at_to)",
        _OWN,
    ),
    Mutation(
        "the rest of a page that own writes filled is left out",
        _CORE,
        "self.looked_at_to if ended_at is None else ended_at",
        "self.looked_at_to",
        _OWN,
    ),
    Mutation(
        "a page may be limited by nothing",
        _CORE,
        "if type(most) is not int or most < 1:",
        "if False:",
        _PAGES + "test_a_page_has_limits_that_are_numbers",
    ),
    Mutation(
        "a page that goes on by columns begins anew",
        "client/snapshots/reading.py",
        '        rest = KeyRange(batch.last_row + b"\\x00", key_range.stop)\n        for scanned',
        "        rest = key_range\n        for scanned",
        _BY_COLUMNS,
    ),
    Mutation(
        "a page that goes backward goes on by columns, forward",
        "client/snapshots/reading.py",
        "if passed >= ROW_BY_ROW_MAX and not reverse:",
        "if passed >= ROW_BY_ROW_MAX:",
        _BY_COLUMNS,
    ),
    Mutation(
        "own writes are laid over a backward scan as over a forward one",
        "client/transactions/write_buffer.py",
        "    comes_before = gt if reverse else lt\n",
        "    comes_before = lt\n",
        "unit/client/transactions/test_write_buffer.py::test_a_scan_shows_the_snapshot_under_the_own_writes",
    ),
    Mutation(
        "of an adopted table a backward scan goes forward",
        "client/snapshots/plain_cells.py",
        "before=before, batch_rows=batch_rows, reverse=reverse)",
        "before=before, batch_rows=batch_rows)",
        "unit/client/snapshots/test_reading.py::test_a_reader_sees_what_the_model_says",
    ),
    Mutation(
        "behind a page that goes backward REST goes on with the rows that it showed",
        "rest/table_routes.py",
        "        if self.after and reverse:\n            stop = min(stop or self.after, self.after)\n        elif",
        "        if",
        "unit/rest/test_rest_transactions.py::test_rows_are_listed_a_page_at_a_time",
    ),
    Mutation(
        "an order that is a text is taken for backward",
        "client/snapshots/snapshot.py",
        "if type(reverse) is not bool:",
        "if False:",
        _PAGES + "test_a_page_is_refused_where_a_scan_is",
    ),
    Mutation(
        "the first row of a scan waits for hundreds",
        "client/snapshots/stored_cells.py",
        "min(SCAN_FIRST_ROWS, batch_rows)",
        "batch_rows",
        _PAGES + "test_after_the_first_rows_of_a_scan_come_many_together",
    ),
    Mutation(
        "the first batch of all columns waits for hundreds that are taken one by one",
        "client/snapshots/all_columns.py",
        "FIRST_ROWS_MAX: Final = 16",
        "FIRST_ROWS_MAX: Final = 500",
        "unit/client/snapshots/test_reading.py::"
        "test_a_scan_of_all_columns_shows_its_first_rows_before_it_has_looked_at_many",
    ),
    Mutation(
        "REST looks at all rows that there are for a page",
        "rest/table_routes.py",
        "        looked_at_max=limits.rows_looked_at_max,\n    )\n\n\ndef _page(",
        "        looked_at_max=10_000_000,\n    )\n\n\ndef _page(",
        "unit/rest/test_rest_transactions.py::test_a_page_ends_where_enough_was_looked_at_and_may_be_empty",
    ),
    Mutation(
        "rows that are read together hide what the transaction wrote",
        "client/transactions/transaction.py",
        "{row: written.overlay(table, row, stored.get(row), columns, as_of) for row in rows}",
        "stored",
        _TOGETHER,
    ),
    Mutation(
        "many rows that are read together are asked for all at once",
        "client/snapshots/reading.py",
        "islice(remaining, SCAN_BATCH_ROWS)",
        "islice(remaining, None)",
        "unit/client/transactions/test_transactions.py::test_many_rows_are_read_by_few_requests",
    ),
    Mutation(
        "one key for a list of them is taken apart into its bytes",
        "client/snapshots/snapshot.py",
        "if isinstance(rows, (bytes, str)) or not isinstance(rows, Collection):",
        "if False:",
        "unit/client/transactions/test_refusals.py::test_rows_to_read_that_are_no_list_of_keys_are_refused",
    ),
    Mutation(
        "an answer of REST holds the rows that were named, however large they are",
        "rest/reads.py",
        "if found and found_bytes > bytes_max:",
        "if False:",
        "unit/rest/test_rest_transactions.py::test_rows_that_are_read_together_are_as_many_as_an_answer_may_hold",
    ),
    Mutation(
        "a row that is larger than an answer may be is never read",
        "rest/reads.py",
        "if found and found_bytes > bytes_max:",
        "if found_bytes > bytes_max:",
        "unit/rest/test_rest_transactions.py::test_rows_that_are_read_together_are_as_many_as_an_answer_may_hold",
    ),
    Mutation(
        "more rows are read than an answer may hold",
        "rest/reads.py",
        "(bytes_max - found_bytes) // bytes_each",
        "READ_TOGETHER_MAX",
        "unit/rest/test_reads.py::test_of_large_rows_no_more_are_read_than_fit",
    ),
    Mutation(
        "REST reads as many rows by one request as are named",
        "rest/table_routes.py",
        "if len(body.reads) > most:",
        "if False:",
        "unit/rest/test_rest_transactions.py::test_rows_of_several_tables_are_read_together",
    ),
]
