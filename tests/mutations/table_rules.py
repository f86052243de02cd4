"""Broken rules of tables on the command line: what of a file or a plain table lands, and what an exported file is."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_APPEARS = "unit/client_tables/test_table_commands.py::test_a_file_that_appears_during_an_export_stays"
_COPYING = "unit/client_tables/test_table_copying.py"
_CUT_OFF = (
    "unit/client_tables/test_table_files.py::"
    "test_a_file_that_ends_within_quotes_is_refused_before_its_last_row_is_given"
)
_KEYS = "unit/client_tables/test_row_key_set.py"
_LANDING = "unit/client_tables/test_table_landing.py"
_CASTING = "unit/client_tables/test_table_casting.py"

TABLE_RULES = [
    Mutation(
        "hexadecimal digits become a whole number, and its highest bit a sign",
        "client/tables/casting.py",
        "    if pa.types.is_integer(numbers.type):",
        "    if False:",
        _CASTING,
    ),
    Mutation(
        "a number that is too large becomes infinity",
        "client/tables/casting.py",
        "    elif pa.types.is_floating(numbers.type):",
        "    elif False:",
        _CASTING,
    ),
    Mutation(
        "a CSV file that was cut off within quotes lands, its end as a value",
        "client/tables/files.py",
        "            self._require_closed_quotes(last)\n",
        "",
        _CUT_OFF,
    ),
    Mutation(
        "the last row of a CSV file is given before it is known whether it was cut off",
        "client/tables/files.py",
        "            self._require_closed_quotes(last)\n            yield last\n",
        "            yield last\n            self._require_closed_quotes(last)\n",
        _CUT_OFF,
    ),
    Mutation(
        "text of a file that is no UTF-8 is not told by its row",
        "client/tables/casting.py",
        "    if pa.types.is_string(wanted) and not is_utf8(converted):",
        "    if False:",
        _CASTING,
    ),
    Mutation(
        "text of a Parquet file is decoded as hexadecimal digits",
        "client/tables/casting.py",
        'elif file_format != "csv" and column.type == "binary" and _is_text(kind):',
        "elif False:",
        _CASTING,
    ),
    Mutation(
        "a day of the year 10,000 is exported to CSV, and cannot be imported",
        "client/tables/exporting.py",
        "        if row >= 0:\n",
        "        if False:\n",
        "unit/client_tables/test_table_commands.py::test_a_day_that_csv_cannot_hold_is_exported_to_parquet_only",
    ),
    Mutation(
        "an export replaces a file that appeared while it ran",
        "client/tables/exporting.py",
        "        os.link(unfinished, path)\n",
        "        unfinished.rename(path)\n",
        _APPEARS,
    ),
    Mutation(
        "without hard links an export replaces a file that appeared while it ran",
        "client/tables/exporting.py",
        "path.touch(exist_ok=False)",
        "path.touch()",
        _APPEARS,
    ),
    Mutation(
        "a copy that goes on copies the last row that has landed over what was changed since",
        "client/tables/copying.py",
        'landed.last_key + b"\\x00" if landed.last_key else b""',
        'b""',
        f"{_COPYING}::test_it_goes_on_after_the_last_row_that_landed",
    ),
    Mutation(
        "a plain cell is copied that would be taken for one of Pythia's",
        "client/adoption/plain_tables.py",
        "next(filter(is_reserved, cells), None)",
        "None",
        f"{_COPYING}::test_columns_that_would_be_taken_for_pythias_are_refused",
    ),
    Mutation(
        "two copies at once land their rows twice",
        "client/tables/record.py",
        "        if found != expected:\n",
        "        if False:\n",
        f"{_COPYING}::test_two_copies_at_once_land_nothing_twice",
    ),
    Mutation(
        "a plain value that begins like a tombstone is copied as one",
        "client/tables/copying.py",
        "map(stored, batches)",
        "batches",
        f"{_COPYING}::test_every_row_is_copied_once_as_it_is",
    ),
    Mutation(
        "a row key that comes twice in a transaction lands, and which row wins is not defined",
        "client/tables/landing.py",
        "            if writer.has_written(cells.row_key(index)):\n",
        "            if False:\n",
        f"{_LANDING}::test_a_row_key_that_occurs_twice_in_a_transaction_is_refused",
    ),
    Mutation(
        "a row is refused since its key has the hash of another",
        "client/tables/landing.py",
        "            if writer.has_written(cells.row_key(index)):\n",
        "            if True:\n",
        f"{_LANDING}::test_row_keys_that_only_share_a_hash_all_land",
    ),
    Mutation(
        "a row that was there before is taken for one of the transaction",
        "client/bulk_writes/writing.py",
        "cell.timestamp == self._start_timestamp for cell",
        "cell.timestamp <= self._start_timestamp for cell",
        f"{_LANDING}::test_a_row_that_was_there_before_the_transaction_is_no_repetition",
    ),
    Mutation(
        "row keys are forgotten when room for more is made",
        "client/tables/row_key_set.py",
        "            enter(self._slots, held, np.empty(held.size, np.int64))\n",
        "",
        _KEYS,
    ),
    Mutation(
        "who may only read and write cannot record how far an import has come",
        "client/catalog/catalog.py",
        "        if stands is None or (believed is None and name not in self._store.table_names()):",
        "        if True:",
        "unit/client_tables/test_table_prepare.py::test_after_it_nobody_has_to_make_a_table",
    ),
    Mutation(
        "a table of records that stands otherwise is taken for Pythia's own",
        "client/catalog/catalog.py",
        "            _require_same(name, stands, records.entry)\n",
        "            pass\n",
        "unit/client_tables/test_table_prepare.py::test_what_stands_under_such_a_name_and_is_another_table_is_refused",
    ),
    Mutation(
        "an administrator leaves a table for the first bulk write to make",
        "client/manager.py",
        "        self.manifest.create()\n",
        "",
        "unit/client_tables/test_table_prepare.py::test_after_it_nobody_has_to_make_a_table",
    ),
]
