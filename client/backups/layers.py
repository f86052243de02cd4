"""The rows of a table from several files: one that has all of them, and those that say what changed since. Pure.

Each file's lines come in the order of the row keys, so all are gone through side by side, a part at a time: up to the
least of the keys at which what was read of a file ends. Of a row that several files have, the newest one counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc


def merged(files: Sequence[Iterator[pa.Table]]) -> Iterator[pa.Table]:
    """The lines of the rows that there are, in the order of their keys; of each row all of them together.

    ``files``: the newest first; of each its lines (``SCHEMA_OF_CHANGES``), with those of a row in one piece.
    """
    remaining = [_Remaining(lines) for lines in files]
    while True:
        ends = [each.last_key() for each in remaining if each.is_there()]
        if not ends:
            return
        together = _newest([each.take(min(ends)) for each in remaining])
        there = together.filter(pc.invert(together.column("deleted")))
        if there.num_rows:
            yield there


class _Remaining:
    """What was read of a file and has not been taken yet."""

    def __init__(self, lines: Iterator[pa.Table]) -> None:
        self._lines = lines
        self._read = next(lines, None)

    def is_there(self) -> bool:
        """Whether there is anything more in the file."""
        return self._read is not None

    def last_key(self) -> bytes:
        """Of what was read."""
        assert self._read is not None
        key: bytes = self._read.column("row")[-1].as_py()
        return key

    def take(self, last_key: bytes) -> pa.Table | None:
        """The lines of what was read up to this key, that one included."""
        if self._read is None:
            return None
        count = pc.sum(pc.less_equal(self._read.column("row"), pa.scalar(last_key, pa.binary()))).as_py()
        taken = self._read.slice(0, count)
        self._read = self._read.slice(count) if count < self._read.num_rows else next(self._lines, None)
        return taken


def _newest(parts: Sequence[pa.Table | None]) -> pa.Table:
    """The lines of some of a file each, the newest first, in the order of their keys: of each row those that count."""
    there = [part for part in parts if part is not None and part.num_rows]
    if len(there) == 1:
        return there[0]
    known = there[0].column("row").combine_chunks()
    counting = [there[0]]
    for older in there[1:]:
        keys = older.column("row")
        counting.append(older.filter(pc.invert(pc.is_in(keys, known))))
        known = pa.concat_arrays([known, counting[-1].column("row").combine_chunks()])
    together = pa.concat_tables(counting).combine_chunks()
    return together.take(pc.sort_indices(together.column("row")))
