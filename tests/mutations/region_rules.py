"""Broken rules of tables of several regions, made where they were said to begin, in the right HBase, or not at all; and
of salted ones, whose rows lie where their keys say.
"""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_SEVERAL = "unit/store/test_several_regions.py::"
_COMMANDS = "unit/client_tables/test_table_commands.py::"
_SALTS = "unit/client_spark/test_salting.py::"
_FILTERS = "unit/client_spark/test_spark_predicates.py::"
_LAYOUT = "unit/client_backups/test_backup_layout.py::"

REGION_RULES = [
    Mutation(
        "a table of several regions is made in another HBase",
        "store/hbase/several_regions.py",
        "        if there != here:\n",
        "        if not there:\n",
        _SEVERAL + "test_nothing_is_made_in_another_hbase",
    ),
    Mutation(
        "a gateway of Thrift 1 is asked for a table of several regions",
        "store/hbase/several_regions.py",
        "        gateway.repeat(_require_thrift_2)\n",
        "",
        _SEVERAL + "test_a_gateway_of_thrift_1_is_asked_for_no_table",
    ),
    Mutation(
        "of a table that is to have several regions it is not said in which namespace",
        "store/hbase/several_regions.py",
        "ns=namespace.encode() if namespace else None",
        "ns=None",
        _SEVERAL + "test_it_is_asked_for_what_was_said",
    ),
    Mutation(
        "split keys are sent in the order in which they came",
        "store/hbase/several_regions.py",
        "_descriptor(calls, table, families), sorted(split_keys)",
        "_descriptor(calls, table, families), list(split_keys)",
        _SEVERAL + "test_it_is_asked_for_what_was_said",
    ),
    Mutation(
        "a Thrift 2 gateway's table that is there is an error that may pass",
        "store/hbase/several_regions.py",
        "kind = AlreadyExists if",
        "kind = GatewayIOError if",
        _SEVERAL + "test_a_table_that_is_there_is_told_as_such",
    ),
    Mutation(
        "what a Thrift 2 gateway refuses for good is asked for again",
        "store/hbase/several_regions.py",
        "GatewayFailure) and error.canRetry is False:",
        "GatewayFailure) and False:",
        _SEVERAL + "test_what_hbase_refuses_for_good_is_asked_once",
    ),
    Mutation(
        "what a Thrift 2 gateway refuses for now is final",
        "store/hbase/several_regions.py",
        "GatewayFailure) and error.canRetry is False:",
        "GatewayFailure):",
        _SEVERAL + "test_what_may_pass_is_asked_again",
    ),
    Mutation(
        "a look at a Thrift 2 gateway makes a table",
        "store/hbase/adapter.py",
        "        self._of_several_regions.require_gateway()\n",
        "        self._of_several_regions.create('looked', [Family('f')], [b'a'])\n",
        _SEVERAL + "test_it_can_be_looked_at_beforehand",
    ),
    Mutation(
        "two regions begin at one key",
        "store/validation.py",
        "        if key in seen:\n",
        "        if not key:\n",
        "contract/test_cell_store.py::TestBadArguments",
    ),
    Mutation(
        "the twin has regions in the order in which they were named",
        "store/memory.py",
        "self.split_keys = sorted(split_keys)",
        "self.split_keys = list(split_keys)",
        "contract/test_cell_store.py::TestTables",
    ),
    Mutation(
        "one of the commit table's regions has all salts but a few",
        "store/making.py",
        "bytes((first_bytes * region // regions,)) for",
        "bytes((region,)) for",
        "unit/commit_table/test_layout.py::test_regions_share_the_salts_evenly",
    ),
    Mutation(
        "a table is made with one region whatever was said",
        "client/catalog/catalog.py",
        "[Family(name) for name in (*families, *apart)], split_keys)",
        "[Family(name) for name in (*families, *apart)])",
        _COMMANDS + "test_a_table_begins_with_the_regions_that_its_rows_want",
    ),
    Mutation(
        "a table of few regions is made without a word",
        "client/tables/commands.py",
        "    if len(cuts) + 1 < regions:\n",
        "    if len(cuts) + 1 > regions:\n",
        _COMMANDS + "test_a_sample_with_few_keys_makes_few_regions_and_says_so",
    ),
    Mutation(
        "a copy wants regions where nothing makes them",
        "client/tables/copying.py",
        "cuts = split_keys_of(manager.store, source) if manager.settings.thrift2 else []",
        "cuts = split_keys_of(manager.store, source)",
        "unit/client_tables/test_table_copying.py::"
        "test_a_table_that_is_made_has_the_regions_of_the_old_one_where_it_can",
    ),
    Mutation(
        "a backup's regions are lost where it is merged",
        "client/backups/creating.py",
        "TableBackup(name, entry, file, split_keys=saved.table.split_keys)",
        "TableBackup(name, entry, file)",
        "unit/client_backups/test_backup_restoring.py::test_they_have_the_regions_that_they_had_where_that_can_be",
    ),
    Mutation(
        "whoever wrote a backup may name any split keys",
        "client/backups/layout.py",
        "    check_split_keys(split_keys)\n",
        "",
        _LAYOUT + "test_what_is_wrong_is_refused",
    ),
    Mutation(
        "a backup of an earlier release is damaged, for it says nothing of regions",
        "client/backups/layout.py",
        'fields.get("split_keys", ())',
        'fields["split_keys"]',
        _LAYOUT + "test_one_of_an_earlier_release_says_nothing_of_regions",
    ),
    Mutation(
        "a sample without a column of the row key is an error of Python's",
        "client/spark/key_codec.py",
        "columns.get(name.lower()), arrow_type(type_name)",
        "columns[name.lower()], arrow_type(type_name)",
        "unit/client_spark/test_region_keys.py::test_a_sample_of_rows_is_parted_by_its_keys",
    ),
    Mutation(
        "a check-up does not look at Thrift 2 gateways",
        "client/checkup/looking.py",
        "            store.require_thrift2()\n",
        "            pass\n",
        "unit/client_checkup/test_check.py::test_a_thrift_2_gateway_is_looked_at_where_one_is_named",
    ),
    Mutation(
        "many keys are salted otherwise than one",
        "client/spark/salting.py",
        "    salts = (hashes_of_rows(_BEFORE, *keys) % np.uint64(buckets)).astype(np.uint8)\n",
        "    salts = (hashes_of_rows(_BEFORE, *keys) // np.uint64(7) % np.uint64(buckets)).astype(np.uint8)\n",
        _SALTS + "test_the_salts_of_many_keys_are_those_of_each",
    ),
    Mutation(
        "a release salts keys otherwise than the one before",
        "client/spark/salting.py",
        '_BEFORE: Final = b"salted row key"',
        '_BEFORE: Final = b"salt of row key"',
        _SALTS + "test_a_key_lies_where_every_release_has_put_it",
    ),
    Mutation(
        "of the last bucket a range goes up to its first key",
        "client/spark/salting.py",
        "KeyRange(salt + start, salt + stop if stop else end_of_prefix(salt))",
        "KeyRange(salt + start, salt + stop)",
        _FILTERS + "test_in_a_salted_table_a_range_lies_in_each_bucket_and_a_whole_key_in_one",
    ),
    Mutation(
        "a salted table is read in its first bucket alone",
        "client/spark/predicates.py",
        "ranges = ranges_in_every_bucket(ranges, mapping.salt_buckets)",
        "ranges = ranges_in_every_bucket(ranges, 1)",
        _FILTERS + "test_ranges_and_remaining_filters_are_the_filters",
    ),
    Mutation(
        "filters that a salted table's ranges do not answer any more are answered",
        "client/spark/predicates.py",
        "ranges, answered = [KeyRange(ranges[0].start, ranges[-1].stop)], set()",
        "ranges = [KeyRange(ranges[0].start, ranges[-1].stop)]",
        _FILTERS + "test_very_many_ranges_of_a_salted_table_are_one_in_each_bucket",
    ),
    Mutation(
        "the keys that a filter names are read in the order in which they were named",
        "client/spark/predicates.py",
        "sorted(_of_row(salted_key(key, mapping.salt_buckets)) for key in keys)",
        "[_of_row(salted_key(key, mapping.salt_buckets)) for key in keys]",
        _FILTERS + "test_in_a_salted_table_a_range_lies_in_each_bucket_and_a_whole_key_in_one",
    ),
    Mutation(
        "a salt is taken for a part of the key",
        "client/spark/key_codec.py",
        "_salt_bytes(mapping), np.int64)",
        "0, np.int64)",
        _SALTS + "test_rows_come_back_as_they_were",
    ),
    Mutation(
        "a salted key is longer than HBase takes",
        "client/spark/key_codec.py",
        "    keys = _join(mapping.key_columns, arrays, ROW_KEY_BYTES_MAX - _salt_bytes(mapping))\n",
        "    keys = _join(mapping.key_columns, arrays)\n",
        _SALTS + "test_a_key_may_be_as_long_as_its_salt_leaves_room_for",
    ),
    Mutation(
        "the rows of some values are said to lie in one place of a salted table",
        "client/spark/key_codec.py",
        "    if len(prefixes) > 1:\n",
        "    if len(prefixes) > 300:\n",
        _SALTS + "test_a_row_key_is_found_by_all_of_its_values_or_in_each_bucket",
    ),
    Mutation(
        "an overwrite replaces what lies in the first bucket",
        "client/spark/writer.py",
        "            for prefix in self._prefixes\n",
        "            for prefix in self._prefixes[:1]\n",
        "unit/client_spark/test_overwriting.py",
    ),
    Mutation(
        "a salted mapping is one that an older release takes for another",
        "client/spark/mapping.py",
        "            return SALTED_FORMAT_VERSION\n",
        "            return FORMAT_VERSION\n",
        _SALTS + "test_the_mapping_is_none_for_who_knows_no_salts",
    ),
    Mutation(
        "more regions than salt buckets are made of nothing",
        "client/spark/region_keys.py",
        "    if regions > max(mapping.salt_buckets, 1):\n",
        "    if regions > 256:\n",
        _SALTS + "test_regions_share_the_buckets_without_a_sample",
    ),
]
