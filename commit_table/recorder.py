"""Recording commits without threads: a batch of columns goes to the store as it is.

What is written is what ``commit_table.layout`` says, in ``commit_table.columns``' form, with the *epoch* as the cells'
timestamp: so a deposed oracle's late write never covers what a newer epoch wrote.
"""

from __future__ import annotations

from commit_table.columns import Timestamps, commit_columns
from store.bulk import BulkPutter

RECORD_COMMITS_MAX = 16_384
"""Commits in one request to the store: half a megabyte to one, according to how many of them share a row."""


class CommitRecorder:
    """Writes to one commit table. Only an oracle does; it repeats what fails, after a look at its lease."""

    def __init__(self, putter: BulkPutter, table: str) -> None:
        self._putter = putter
        self._table = table

    async def record(self, start_timestamps: Timestamps, commit_timestamps: Timestamps, epoch: int) -> None:
        """Record commits that an oracle of ``epoch`` decided, in puts of ``RECORD_COMMITS_MAX`` one after the other.

        Writing the same again is harmless. ``StoreUnavailable``: any part of it may be written, or be written yet.
        ``ValueError``: these are no commits that an oracle could have decided; nothing is written.
        """
        rows, columns, values = commit_columns(start_timestamps, commit_timestamps)
        for first in range(0, len(rows), RECORD_COMMITS_MAX):
            part = slice(first, first + RECORD_COMMITS_MAX)
            await self._putter.put(self._table, rows[part], columns[part], values[part], epoch)
