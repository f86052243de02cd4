"""What bulk writers wrote into a transaction, on record before it is written.

Spark tasks write cells from processes that nobody waits for and that may die at any moment; a failed attempt is named
by no commit message. So an attempt first records the row keys it is about to write, in a table of its own, and then
writes. From the record any process can tell the transaction's write set, finish its shadow cells, or mark the cells of
an aborted one; and a commit can see that a job of it never ended.

=======  ==================================================================================================
row key  start timestamp, job (its name, a zero byte), partition, attempt, sequence, table; or that it is *open*, or
         its *seal*; or, with no job, who *ends* the transaction
``m:``   ``table``, ``columns`` (JSON list, hexadecimal), ``rows`` (each with its length before it, 2 bytes)
seal     ``winners``: JSON list of the (partition, attempt) pairs whose rows count
=======  ==================================================================================================
"""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from client.catalog import OwnTable
from client.errors import InvalidRequest
from commit_table import system_table
from store import Applied, CellStore, Family, KeyRange, Row, RowPut, StoreUnavailable, Unknown

ENTRY_ROW_BYTES_MAX = 2**20
"""Row keys in one manifest cell: well below the largest cell that HBase takes."""

START = struct.Struct(">q")
"""How every row key begins: the transaction's start timestamp."""
_ATTEMPT = struct.Struct(">IQI")
_LENGTH = struct.Struct(">H")
_OPEN, _SEAL, _ENTRY = b"\x00", b"\x01", b"\x02"  # a scan that meets the seal comes to every entry after it
END, _CLAIM = b"\x00", b"m:claimant"
"""What follows in the row key of the cell that says who ends the transaction."""
CLAIM_ATTEMPTS_MAX = 10

Attempt = tuple[int, int]
"""(partition, attempt) of a task."""


@dataclass(slots=True)
class Job:
    """One bulk write: what each attempt recorded, and which attempts count (``None``: it never ended well)."""

    winners: frozenset[Attempt] | None = None
    written: dict[Attempt, dict[str, dict[bytes, set[bytes]]]] = field(default_factory=dict)
    """Attempt → table → row → columns."""

    def unrepeated(self) -> list[tuple[str, bytes]]:
        """Rows that attempts wrote which do not count, and no counting attempt wrote: they must not become visible."""
        counting = {
            (table, row)
            for attempt in self.winners or ()
            for table, rows in self.written.get(attempt, {}).items()
            for row in rows
        }
        return sorted(
            {(table, row) for tables in self.written.values() for table, rows in tables.items() for row in rows}
            - counting
        )


class Manifest:
    """The record of bulk writes, of all transactions of an installation."""

    def __init__(self, store: CellStore, root: str) -> None:
        self._store = store
        self._own = OwnTable(store, system_table(root, "manifest"), Family("m", versions_max=1))

    def record(
        self, start_timestamp: int, job: str, attempt: Attempt, sequence: int, table: str, puts: Sequence[RowPut]
    ) -> int:
        """Record what is about to be written; returns the next free sequence number of the attempt."""
        columns = sorted(set().union(*(put.columns for put in puts)))
        entries = []
        for rows in _chunks([put.row for put in puts]):
            key = (
                START.pack(start_timestamp)
                + _job_key(job)
                + _ENTRY
                + _ATTEMPT.pack(*attempt, sequence)
                + table.encode()
            )
            cells = {
                b"m:table": table.encode(),
                b"m:columns": json.dumps([column.hex() for column in columns]).encode(),
                b"m:rows": b"".join(_LENGTH.pack(len(row)) + row for row in rows),
            }
            entries.append(RowPut(key, cells))
            sequence += 1
        self._store.put(self._own.name(), entries, start_timestamp)
        return sequence

    def open(self, start_timestamp: int, job: str) -> None:
        """Say that a job is about to write: until it is sealed, its transaction must not commit."""
        key = START.pack(start_timestamp) + _job_key(job) + _OPEN
        self._store.put(self._own.name(), [RowPut(key, {b"m:open": b"1"})], start_timestamp)

    def seal(self, start_timestamp: int, job: str, winners: Sequence[Attempt]) -> None:
        """Say that a job ended well, and by which attempts."""
        key = START.pack(start_timestamp) + _job_key(job) + _SEAL
        value = json.dumps(sorted(winners)).encode()
        self._store.put(self._own.name(), [RowPut(key, {b"m:winners": value})], start_timestamp)

    def claim_end(self, start_timestamp: int, claimant: str) -> bool:
        """Whether ``claimant``, a text never used before, is the one that ends the transaction; only one ever is."""
        key, value = START.pack(start_timestamp) + END, claimant.encode()
        for _ in range(CLAIM_ATTEMPTS_MAX):
            answer = self._store.compare_and_set(
                self._own.name(), key, check=_CLAIM, expected=None, put=_CLAIM, value=value
            )
            if not isinstance(answer, Unknown):
                return isinstance(answer, Applied)
            stored = self._store.get(self._own.name(), key, [_CLAIM]).get(_CLAIM)
            if stored is not None:
                return stored.value == value
        raise StoreUnavailable(f"it cannot be found out who ends transaction {start_timestamp}")

    def jobs(self, start_timestamp: int) -> dict[str, Job]:
        """Everything on record for a transaction, by job."""
        jobs: defaultdict[str, Job] = defaultdict(Job)
        for key, cells in self._scan(start_timestamp):
            if key[START.size :] == END:
                continue
            name, _, rest = key[START.size :].partition(b"\0")
            job = jobs[name.decode()]
            if rest[:1] == _SEAL:
                winners = json.loads(cells[b"m:winners"].value)
                job.winners = frozenset((partition, attempt) for partition, attempt in winners)
            elif rest[:1] == _ENTRY:
                partition, attempt, _ = _ATTEMPT.unpack_from(rest, 1)
                _add(job.written.setdefault((partition, attempt), {}), cells)
        return dict(jobs)

    def job_ends(self, start_timestamp: int) -> dict[str, bool]:
        """Every job on record for a transaction, and whether it is sealed; no row key is read."""
        ends: dict[str, bool] = {}
        for key, _ in self._scan(start_timestamp, [b"m:open", b"m:winners", b"m:table"]):
            name, _, rest = key[START.size :].partition(b"\0")
            ends[name.decode()] = ends.get(name.decode(), False) or rest[:1] == _SEAL
        return ends

    def forget(self, start_timestamp: int) -> None:
        """Drop the record of a transaction whose shadow cells all stand."""
        self._store.delete(self._own.name(), [key for key, _ in self._scan(start_timestamp)], start_timestamp)

    def _scan(self, start_timestamp: int, columns: Sequence[bytes] = (b"m",)) -> Iterator[tuple[bytes, Row]]:
        key_range = KeyRange(START.pack(start_timestamp), START.pack(start_timestamp + 1))
        return self._store.scan(self._own.name(), key_range, columns, batch_rows=100)


def _job_key(job: str) -> bytes:
    if not job or "\0" in job:
        raise InvalidRequest(f"a job's name is text without zero bytes, not {job!r}")
    return job.encode() + b"\0"


def _chunks(rows: Iterable[bytes]) -> Iterator[list[bytes]]:
    chunk: list[bytes] = []
    size = 0
    for row in rows:
        if chunk and size + len(row) > ENTRY_ROW_BYTES_MAX:
            yield chunk
            chunk, size = [], 0
        chunk.append(row)
        size += len(row) + _LENGTH.size
    if chunk:
        yield chunk


def _add(tables: dict[str, dict[bytes, set[bytes]]], cells: Row) -> None:
    columns = {bytes.fromhex(column) for column in json.loads(cells[b"m:columns"].value)}
    rows = tables.setdefault(cells[b"m:table"].value.decode(), {})
    packed = cells[b"m:rows"].value
    position = 0
    while position < len(packed):
        (length,) = _LENGTH.unpack_from(packed, position)
        position += _LENGTH.size + length
        row = packed[position - length : position]
        rows[row] = rows[row] | columns if row in rows else columns


def all_rows(jobs: Mapping[str, Job]) -> dict[str, dict[bytes, set[bytes]]]:
    """Table → row → columns that any attempt of any job wrote."""
    merged: dict[str, dict[bytes, set[bytes]]] = {}
    for job in jobs.values():
        for tables in job.written.values():
            for table, rows in tables.items():
                known = merged.setdefault(table, {})
                for row, columns in rows.items():
                    known[row] = known[row] | columns if row in known else columns
    return merged
