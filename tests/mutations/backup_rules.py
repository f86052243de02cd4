"""Rules of backups, broken."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_LAYOUT = "unit/client_backups/test_backup_layout.py"
_FILES = "unit/client_backups/test_backup_files.py"
_CREATING = "unit/client_backups/test_backup_creating.py"
_RESTORING = "unit/client_backups/test_backup_restoring.py"

BACKUP_RULES = [
    Mutation(
        "a backup has its name before all of it is on the disk",
        "client/backups/creating.py",
        "        for written in unfinished.iterdir():\n            keep(written)\n",
        "",
        f"{_CREATING}::test_it_has_its_name_only_once_all_of_it_is_on_the_disk",
    ),
    Mutation(
        "a backup that fails stays",
        "client/backups/creating.py",
        "            shutil.rmtree(unfinished)\n",
        "            pass\n",
        f"{_CREATING}::test_one_that_fails_leaves_nothing",
    ),
    Mutation(
        "Pythia's records of what landed go into a backup",
        "client/backups/creating.py",
        "    if name in manager.catalog.record_tables:\n",
        "    if False:\n",
        f"{_CREATING}::test_what_is_no_table_of_ones_own_is_refused",
    ),
    Mutation(
        "a row without cells is not in a backup",
        "client/backups/cell_files.py",
        "(cells.value_lengths == ABSENT).all(axis=0)",
        "np.zeros(cells.rows, np.bool_)",
        f"{_FILES}::test_rows_come_back_as_they_were",
    ),
    Mutation(
        "a row that has a column twice is restored, with one of the two",
        "client/backups/cell_files.py",
        "    if len(wrong):\n",
        "    if False:\n",
        f"{_FILES}::test_what_no_snapshot_can_have_shown_is_refused",
    ),
    Mutation(
        "a file that has changed is restored",
        "client/backups/cell_files.py",
        "    if found != file.sha256:\n",
        "    if False:\n",
        f"{_RESTORING}::test_nothing_is_made_of_a_backup_that_is_damaged",
    ),
    Mutation(
        "rows that are not in the order of their keys are restored, so that a restore that goes on leaves some out",
        "client/backups/cell_files.py",
        "key <= before",
        "key == before",
        f"{_FILES}::test_what_no_snapshot_can_have_shown_is_refused",
    ),
    Mutation(
        "a backup writes cells that Pythia keeps for itself",
        "client/backups/cell_files.py",
        "is_reserved(column) or ",
        "",
        f"{_FILES}::test_what_no_snapshot_can_have_shown_is_refused",
    ),
    Mutation(
        "a backup names files outside of its directory",
        "client/backups/layout.py",
        "    if file.name != file_name(table):\n",
        "    if False:\n",
        f"{_LAYOUT}::test_what_is_wrong_is_refused",
    ),
    Mutation(
        "a restore goes over a table that somebody has filled",
        "client/backups/restoring.py",
        "        if self._record().read() == Progress() and self._has_rows():\n",
        "        if False:\n",
        f"{_RESTORING}::test_a_table_that_is_in_the_way_is_refused_before_anything_is_made",
    ),
    Mutation(
        "a restore that goes on lands what has landed over what was changed since",
        "client/backups/restoring.py",
        "bisect_right(range(batch.rows), after, key=batch.row_key)",
        "0",
        f"{_RESTORING}::test_it_goes_on_after_the_last_row_that_landed",
    ),
    Mutation(
        "a restored value that begins like a tombstone is one",
        "client/backups/restoring.py",
        "cells = stored(beyond)",
        "cells = beyond",
        f"{_RESTORING}::test_tables_are_as_they_were",
    ),
    Mutation(
        "a row of nothing but nulls is gone after a restore",
        "client/backups/restoring.py",
        "        if is_empty.any():\n",
        "        if False:\n",
        f"{_RESTORING}::test_tables_are_as_they_were",
    ),
    Mutation(
        "a table that is restored under another name has the mapping of the old one",
        "client/backups/restoring.py",
        "entry=replace(backup.entry, description=mapping.to_json().encode())",
        "entry=backup.entry",
        f"{_RESTORING}::test_they_are_made_under_another_name",
    ),
]
