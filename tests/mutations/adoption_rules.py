"""Broken rules of adopted tables: what is seen of plain cells, what vacuums leave of them, which tables are refused."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_ADOPTING = "unit/client/adoption/test_adopting.py::"
_PLAIN = "unit/client/snapshots/test_plain_cells.py::"
_READER = "unit/client/snapshots/test_reading.py::test_a_reader_sees_what_the_model_says"
_SHOWN = _PLAIN + "test_each_call_shows_what_a_transaction_would_have_left"
_SWEEP = "unit/client_vacuum/test_vacuum_sweep.py::test_every_snapshot_at_or_above_the_horizon_reads_the_same"
_VACUUM = _ADOPTING + "test_a_vacuum_leaves_what_is_seen_and_takes_what_lies_below_what_was_written"
_CODECS = "unit/client_spark/test_spark_codecs.py::"

ADOPTION_RULES = [
    Mutation(
        "what a program goes on putting into an adopted table is seen",
        "client/snapshots/plain_cells.py",
        "return writer if writer == plain_through else NOT_COMMITTED",
        "return writer",
        _READER,
    ),
    Mutation(
        "the commit table is asked about who goes on without transactions",
        "client/snapshots/plain_cells.py",
        "return writer if writer == plain_through else NOT_COMMITTED",
        "return writer if writer == plain_through else OPEN",
        _ADOPTING + "test_no_question_is_asked_of_the_commit_table_about_what_was_there",
    ),
    Mutation(
        "a transaction of an adopted table is taken for a plain program",
        "client/snapshots/plain_cells.py",
        "if plain_through and writer < TRANSACTIONS_FROM:",
        "if plain_through:",
        _READER,
    ),
    Mutation(
        "a plain value that looks like a tombstone is one",
        "client/snapshots/plain_cells.py",
        "column: cell if cell.timestamp > plain_through else Cell(encode_value(cell.value), plain_through)",
        "column: cell if cell.timestamp > plain_through else Cell(cell.value, plain_through)",
        _SHOWN,
    ),
    Mutation(
        "among columns a plain value that looks like a tombstone is one",
        "client/snapshots/plain_cells.py",
        "    if escaped.any():",
        "    if False:",
        _SHOWN,
    ),
    Mutation(
        "among columns plain cells keep their timestamps",
        "client/snapshots/plain_cells.py",
        "np.where(plain, plain_through, batch.timestamps)",
        "batch.timestamps",
        _SHOWN,
    ),
    Mutation(
        "among columns that nobody expected plain cells keep their timestamps",
        "client/snapshots/plain_cells.py",
        "row: dict(as_written(each, plain_through))",
        "row: each",
        _SHOWN,
    ),
    Mutation(
        "below what was seen of plain cells others are seen",
        "client/snapshots/plain_cells.py",
        "return before <= self._plain_through",
        "return False",
        _SHOWN,
    ),
    Mutation(
        "of plain versions all are shown",
        "client/snapshots/plain_cells.py",
        "found[len(written) : len(written) + 1]",
        "found[len(written) :]",
        _SHOWN,
    ),
    Mutation(
        "readers write shadow cells beside plain cells",
        "client/snapshots/settler.py",
        "            missing.pop((plain, plain), None)\n",
        "",
        _ADOPTING + "test_no_question_is_asked_of_the_commit_table_about_what_was_there",
    ),
    Mutation(
        "pages of versions are read as they lie in an adopted table",
        "client/snapshots/settler.py",
        "        cells = self._stored.cells(table)\n",
        "        cells = self._stored._store\n",
        _READER,
    ),
    Mutation(
        "below a hidden version an adopted table is read as it lies there",
        "client/snapshots/settler.py",
        "self._stored.cells(table).get_many(table, list(wanted)",
        "self._stored._store.get_many(table, list(wanted)",
        _READER,
    ),
    Mutation(
        "a vacuum takes plain cells for what aborted",
        "client/vacuum/run.py",
        "entry.family_columns, entry.plain_through,",
        "entry.family_columns, 0,",
        _VACUUM,
    ),
    Mutation(
        "a part of a vacuum takes plain cells for what aborted",
        "client/vacuum/parts.py",
        "Sweeping(orders.horizon, part.plain_through, part.before)",
        "Sweeping(orders.horizon, 0, part.before)",
        _VACUUM,
    ),
    Mutation(
        "the tasks of a vacuum take plain cells for what aborted",
        "client/spark/sweeping.py",
        "replace(part, key_range=key_range)",
        "replace(part, key_range=key_range, plain_through=0)",
        "unit/client_spark/test_task_ranges.py::"
        "test_a_vacuum_sweeps_every_region_by_itself_and_knows_what_was_left_of_the_table",
    ),
    Mutation(
        "a sweep reads an adopted table as it lies there",
        "client/vacuum/sweep.py",
        "        return cells_of(self._store, sweeping.plain_through)\n",
        "        return self._store\n",
        _SWEEP,
    ),
    Mutation(
        "a sweep asks the oracle about who goes on without transactions",
        "client/vacuum/sweep.py",
        "known = {writer: outcome_of_plain(writer, sweeping.plain_through) for writer in sites}",
        "known = dict.fromkeys(sites, OPEN)",
        _SWEEP,
    ),
    Mutation(
        "a sweep writes shadow cells beside plain cells",
        "client/vacuum/sweep.py",
        " and writer != self._sweeping.plain_through:",
        ":",
        "unit/client_vacuum/test_vacuum_sweep.py::test_nothing_that_could_go_stays",
    ),
    Mutation(
        "rows that nobody has written since their table was adopted are looked at one by one",
        "client/vacuum/clean_rows.py",
        "np.isin(writers, list(lasting)) | plain",
        "np.isin(writers, list(lasting))",
        "unit/client_vacuum/test_clean_rows.py",
    ),
    Mutation(
        "a vacuum passes over no row with plain cells",
        "client/vacuum/swept.py",
        "(newest > shown) & (newest != plain_through)",
        "newest > shown",
        "unit/client_vacuum/test_swept.py",
    ),
    Mutation(
        "a cell that could be a transaction's is adopted",
        "client/adoption/adopting.py",
        "    if newest >= TRANSACTIONS_FROM:",
        "    if newest >= 2**63:",
        _ADOPTING + "test_a_cell_that_could_be_a_transaction_s_is_refused",
    ),
    Mutation(
        "a table is adopted while transactions cannot be told from plain puts",
        "client/adoption/adopting.py",
        "    if now < TRANSACTIONS_FROM:",
        "    if now < 0:",
        _ADOPTING + "test_while_the_oracle_s_clock_is_that_of_1970_nothing_is_adopted",
    ),
    Mutation(
        "a cell of a column that nobody expected is adopted with any timestamp",
        "client/adoption/adopting.py",
        "max(others, default=0))",
        "0)",
        _ADOPTING + "test_a_cell_that_could_be_a_transaction_s_is_refused",
    ),
    Mutation(
        "a cell that is newer than the clock of who adopts is left out",
        "client/adoption/adopting.py",
        "plain_through=max(newest, wall_ms())",
        "plain_through=wall_ms()",
        _ADOPTING + "test_a_cell_that_is_newer_than_our_clock_was_there_all_the_same",
    ),
    Mutation(
        "a table whose cells go for their age is adopted",
        "client/adoption/adopting.py",
        "    _require_lasting(store, table)\n",
        "",
        _ADOPTING + "test_a_family_that_drops_cells_is_refused",
    ),
    Mutation(
        "a column that could be ours is adopted",
        "client/adoption/plain_tables.py",
        "            _require_none_reserved(table, batch)\n",
        "",
        _ADOPTING + "test_a_column_that_could_be_ours_is_refused",
    ),
    Mutation(
        "a table of the installation's own is adopted",
        "client/catalog/catalog.py",
        "        if not stands.plain_through:\n",
        "        if False:\n",
        _ADOPTING + "test_what_is_ours_or_is_not_there_is_refused",
    ),
    Mutation(
        "a table is adopted while others still remember another one of its name",
        "client/catalog/catalog.py",
        "        if stored is not None and not is_entry(stored):\n            wait_until_forgotten(table, stored)\n",
        "",
        _ADOPTING + "test_a_name_is_adopted_once_every_process_has_had_to_ask_again",
    ),
    Mutation(
        "a release that knows no adopted tables reads one",
        "client/catalog/entry.py",
        '{"format": _ADOPTED, "plain_through": self.plain_through}',
        '{"plain_through": self.plain_through}',
        _ADOPTING + "test_what_is_stored_of_a_table_that_was_made_is_as_before",
    ),
    Mutation(
        "a plain row key ends as text in other keys does",
        "client/spark/key_codec.py",
        "[column.type in TEXTS and not column.plain for column in columns]",
        "[column.type in TEXTS for column in columns]",
        _CODECS + "test_a_plain_row_key_is_its_value",
    ),
    Mutation(
        "a zero byte in a plain row key is escaped",
        "client/spark/key_codec.py",
        "texts(array) if column.plain else text_key_parts(texts(array))",
        "text_key_parts(texts(array))",
        _CODECS + "test_what_is_no_plain_row_key_is_refused",
    ),
    Mutation(
        "a row is written without a row key",
        "client/spark/key_codec.py",
        "    if columns[0].plain and not keys.lengths.all():",
        "    if False:",
        _CODECS + "test_what_is_no_plain_row_key_is_refused",
    ),
    Mutation(
        "a filter for one plain row key reads all that begin with it",
        "client/spark/key_codec.py",
        'part + b"\\x00" if column.plain else end_of_prefix(part)',
        "end_of_prefix(part)",
        "unit/client_spark/test_spark_predicates.py::test_a_plain_row_key_ends_where_its_text_does",
    ),
    Mutation(
        "a zero byte in what a plain row key begins with is escaped",
        "client/spark/key_codec.py",
        'text.encode() if column.plain else text.encode().replace(b"\\x00", _ESCAPED_ZERO)',
        'text.encode().replace(b"\\x00", _ESCAPED_ZERO)',
        "unit/client_spark/test_spark_predicates.py::test_a_plain_row_key_ends_where_its_text_does",
    ),
    Mutation(
        "who knows no plain row keys takes their mapping for another",
        "client/spark/mapping.py",
        "            return PLAIN_KEY_FORMAT_VERSION\n",
        "            return FORMAT_VERSION\n",
        "unit/client_spark/test_spark_mapping.py::test_a_mapping_with_a_plain_row_key_is_none_for_who_knows_none",
    ),
]
