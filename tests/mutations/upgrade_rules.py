"""Broken rules of upgrades, and of who may change the znodes."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_RACES = "unit/lease/test_level_races.py"
_GATE = "unit/lease/test_level_gate.py"

_DATA = "unit/tso/test_identity.py"
_SAME_DATA = "unit/client/test_same_data.py"

UPGRADE_RULES = [
    Mutation(
        "an oracle at an empty HBase takes over where another one has the data",
        "tso/persistence/identity.py",
        "        if found == recorded:\n",
        "        if found in (recorded, None):\n",
        f"{_DATA}::test_an_oracle_at_another_hbase_ends_and_does_not_take_over "
        f"{_DATA}::test_an_empty_hbase_under_a_zookeeper_that_knows_better_is_refused_with_what_to_do",
    ),
    Mutation(
        "an oracle makes its tables in somebody else's HBase",
        "tso/process.py",
        "        self._data.look()\n",
        "",
        f"{_DATA}::test_an_oracle_at_another_hbase_ends_and_does_not_take_over",
    ),
    Mutation(
        "a warm standby takes over whatever has become of the data",
        "tso/persistence/floor.py",
        "            self._look()\n",
        "",
        f"{_DATA}::test_a_warm_standby_does_not_take_over_data_that_were_lost_since",
    ),
    Mutation(
        "of two oracles that come first with different data both may serve",
        "tso/persistence/identity.py",
        "self._timeout_ms)\n            if recorded is None:\n",
        "self._timeout_ms) and identity\n            if recorded is None:\n",
        f"{_DATA}::test_of_two_that_come_first_with_different_data_one_is_refused",
    ),
    Mutation(
        "data are given another name than they have",
        "commit_table/identity.py",
        "            if stands is not None:\n",
        "            if stands == identity:\n",
        f"{_DATA}::test_a_zookeeper_that_was_made_anew_learns_the_name_from_the_data "
        f"{_DATA}::test_data_keep_their_first_name_whatever_answers_are_lost",
    ),
    Mutation(
        "only the first of several gateways is looked through",
        "tso/commands/serve.py",
        "    for address in map(str, parse_addresses(settings.thrift)):\n",
        "    for address in map(str, parse_addresses(settings.thrift)[:1]):\n",
        f"{_DATA}::test_each_gateway_is_looked_through_when_an_oracle_starts",
    ),
    Mutation(
        "a client writes where the oracles do not",
        "client/catalog/catalog.py",
        "        self._require_same_data()\n",
        "",
        f"{_SAME_DATA}::test_a_library_at_another_hbase_is_refused_before_it_writes_anything",
    ),
    Mutation(
        "a vacuum marks another installation's tables by its own horizon",
        "client/vacuum/run.py",
        "    manager.catalog.require_level()  # before anything is written: these may be the data of other oracles\n",
        "",
        f"{_SAME_DATA}::test_a_library_at_another_hbase_is_refused_before_it_writes_anything",
    ),
    Mutation(
        "a primary that takes its lease back has handed over",
        "fleet/oracles.py",
        "                if one is primary:\n",
        "                if False:\n",
        "unit/fleet/test_fleet_oracles.py::test_a_primary_that_takes_its_lease_back_has_not_handed_over",
    ),
    Mutation(
        "a member whose node was removed is never seen again",
        "lease/membership.py",
        " and not self._touched.is_set():\n",
        ":\n",
        "unit/lease/test_candidate.py::test_a_member_whose_node_is_touched_by_hand_is_seen_again "
        "unit/lease/test_candidate.py::test_members_are_seen_again_after_every_znode_was_removed",
    ),
    Mutation(
        "members whose parent was removed are never seen again",
        "lease/membership.py",
        "            if joins:  #",
        "            if False:  #",
        "unit/lease/test_candidate.py"
        "::test_members_are_seen_again_after_their_parent_was_removed_and_the_level_was_left",
    ),
    Mutation(
        "an installation whose root was made by an administrator never has a primary",
        "lease/coordinator.py",
        "            if not _exists(coordinator, path, timeout_ms):\n                raise\n",
        "            raise\n",
        "unit/lease/test_candidate.py::test_a_root_in_a_place_where_nobody_may_make_nodes_is_used",
    ),
    Mutation(
        "the level goes beyond what the operator agreed to",
        "tso/commands/upgrading.py",
        "        if target > agreed:\n",
        "        if False:\n",
        "unit/tso/test_levels.py::test_the_level_does_not_go_beyond_what_was_agreed_to",
    ),
    Mutation(
        "a level that ZooKeeper lost meanwhile is told as raised",
        "tso/commands/upgrading.py",
        "        if seen.level.record.required < target:",
        "        if False:",
        "unit/tso/test_levels.py::test_a_level_that_zookeeper_lost_meanwhile_is_not_told_as_raised",
    ),
    Mutation(
        "a primary that lost its lease while it was drained is said to serve on",
        "tso/process.py",
        "if not finished and (self._stop.is_set() or not pipeline.ended):",
        "if not finished:",
        "unit/tso/test_draining.py::test_a_primary_that_loses_its_lease_while_it_is_drained_ends",
    ),
    Mutation(
        "a process joins without a look at the level as it joins",
        "lease/membership.py",
        "result = self._commit([self._gate.unchanged(level), joined, create])",
        "result = self._commit([joined, create])",
        f"{_RACES}::test_of_a_join_and_a_raise_one_is_refused",
    ),
    Mutation(
        "a join leaves no trace for who raises the level",
        "lease/membership.py",
        "result = self._commit([self._gate.unchanged(level), joined, create])",
        "result = self._commit([self._gate.unchanged(level), create])",
        f"{_RACES}::test_of_a_join_and_a_raise_one_is_refused",
    ),
    Mutation(
        "the level is raised by a list of members that is out of date",
        "lease/raising.py",
        "        Check(paths.members, seen.members_version),\n",
        "",
        f"{_RACES}::test_of_a_join_and_a_raise_one_is_refused",
    ),
    Mutation(
        "the lease is taken over at a level that was raised meanwhile",
        "lease/candidate.py",
        "                registry.gate.unchanged(level),\n",
        "",
        f"{_GATE}::test_a_takeover_is_refused_where_the_level_was_raised_since_it_was_read",
    ),
    Mutation(
        "an older primary goes on renewing its lease",
        "lease/tenure.py",
        "return [*operations, self._registry.gate.unchanged(self._level)]",
        "return operations",
        f"{_RACES}::test_an_older_primary_that_is_no_member_loses_the_lease_before_the_level_is_complete",
    ),
    Mutation(
        "the new level may be written while an older primary still serves",
        "lease/raising.py",
        "if lease is None or lease.released or lease.level >= required:",
        "if True:",
        f"{_RACES}::test_an_older_primary_that_is_no_member_loses_the_lease_before_the_level_is_complete",
    ),
    Mutation(
        "a raise that changes nothing but the version ends a newer primary's tenure",
        "lease/tenure.py",
        "        self._know_level(self._registry.gate.admitted())\n",
        "",
        f"{_RACES}::test_a_newer_primary_goes_on_and_says_the_new_level",
    ),
    Mutation(
        "the level that is required goes down again",
        "lease/raising.py",
        "LevelRecord(old.level, max(level, old.required))",
        "LevelRecord(min(level, old.level), level)",
        f"{_GATE}::test_the_level_never_goes_down",
    ),
    Mutation(
        "who knows only the new level takes part while the old one is written",
        "lease/gate.py",
        '        levels.require(record.level, f"the installation {root}")\n',
        "",
        f"{_GATE}::test_who_does_not_know_the_old_level_waits_until_the_new_one_is_complete",
    ),
    Mutation(
        "the level on record with the data goes down",
        "commit_table/level_record.py",
        "if (_parsed(stored) or 0) >= level:",
        "if (_parsed(stored) or 0) == level:",
        "unit/versions/test_versions.py::test_the_level_of_data_is_put_once_and_only_goes_up",
    ),
    Mutation(
        "the new level may be written before those who only read cells were told",
        "tso/commands/upgrading.py",
        "    of_data.raise_to(target)\n",
        "",
        "unit/tso/test_levels.py::test_the_level_waits_for_a_holder_of_the_lease_that_does_not_know",
    ),
    Mutation(
        "nobody waits until every client has seen the new level",
        "tso/commands/upgrading.py",
        "    wait(SEEN_SECONDS)\n",
        "",
        "unit/tso/test_levels.py::test_the_level_is_raised_when_everybody_can",
    ),
    Mutation(
        "a reader of cells believes for good that it works at the level",
        "client/catalog/catalog.py",
        "if read_seconds < self._level_read_seconds + ENTRY_AGE_SECONDS_MAX:",
        "if self._level_read_seconds > 0:",
        "unit/client/test_levels.py::test_who_only_reads_cells_is_told_by_the_data",
    ),
    Mutation(
        "a client stays connected that does not work at the level any more",
        "client/connection/primary.py",
        "            except LevelRefused:  # whoever looks for the primary is told why\n                return True\n",
        "",
        "unit/client/test_levels.py::test_the_lease_says_when_a_library_is_too_old",
    ),
    Mutation(
        "an unknown newer version is read as if it were known",
        "versions/formats.py",
        "if type(version) is int and version in self.versions:",
        "if type(version) is int:",
        "unit/versions/test_versions.py::"
        "test_what_says_its_version_is_read_and_a_newer_one_is_refused_with_what_to_do",
    ),
    Mutation(
        "znodes that anybody may change are taken for ours",
        "lease/protection.py",
        "        if grant.scheme == \"world\" and grant.change:\n            return Holder.ANYBODY\n",
        "",
        "unit/lease/test_protection.py::test_whose_a_node_is",
    ),
    Mutation(
        "a password that ZooKeeper does not know the nodes by is taken for the right one",
        "lease/protection.py",
        "name == user and digest != _MASKED and",
        "name == user and",
        "unit/lease/test_protection.py::test_whose_a_node_is",
    ),
    Mutation(
        "processes that run without credentials are locked out of their own znodes",
        "lease/protection.py",
        "        if running:\n",
        "        if False:\n",
        "unit/lease/test_protection.py::test_nothing_is_protected_from_a_process_that_has_no_credentials",
    ),
    Mutation(
        "kazoo's log has the password",
        "lease/credentials.py",
        '        return "(hidden)"',
        "        return super().__repr__()",
        "unit/lease/test_protection.py::test_credentials_are_not_shown",
    ),
    Mutation(
        "a bulk writer at work does not look at the level again",
        "client/bulk_writes/writing.py",
        "level = self._catalog.entry(self._table).conflict_level ",
        "level = self._catalog._entries[self._table].entry.conflict_level ",
        "unit/client/test_levels.py::test_a_writer_at_work_is_told_before_its_next_rows",
    ),
    Mutation(
        "a shadow pass goes on past the level it knows",
        "client/bulk_writes/shadow_pass.py",
        "        catalog.require_level()\n",
        "",
        "unit/client/test_levels.py::test_shadow_cells_are_written_only_as_long_as_their_format_is_the_installations",
    ),
    Mutation(
        "a vacuum goes on past the level it knows",
        "client/vacuum/run.py",
        "            manager.catalog.require_level()  # before the next batch\n",
        "",
        "unit/client/test_vacuum.py::test_a_vacuum_ends_where_the_level_is_raised",
    ),
]  # fmt: skip
