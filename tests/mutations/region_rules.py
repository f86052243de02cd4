"""Broken rules of tables of several regions: made where they were said to begin, in the right HBase, or not at all."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_SEVERAL = "unit/store/test_several_regions.py::"
_COMMANDS = "unit/client_tables/test_table_commands.py::"
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
        "commit_table/layout.py",
        "bytes((SALTS * region // regions,)) for",
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
        "client/spark/region_keys.py",
        "    if missing:\n",
        "    if missing and not rows.num_rows:\n",
        "unit/client_tables/test_table_splits.py::test_a_sample_of_rows_is_parted_by_its_keys",
    ),
    Mutation(
        "a check-up does not look at Thrift 2 gateways",
        "client/checkup/looking.py",
        "            store.require_thrift2()\n",
        "            pass\n",
        "unit/client_checkup/test_check.py::test_a_thrift_2_gateway_is_looked_at_where_one_is_named",
    ),
]
