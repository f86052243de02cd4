"""What bulk writers wrote into a transaction, on record before it is written.

Spark tasks write cells from processes that nobody waits for and that may die at any moment; a failed attempt is named
by no commit message. So an attempt first records the rows it is about to write, in a table of its own, and then writes.
From the record any process can tell the transaction's write set, finish its shadow cells, or mark the cells of an
aborted one; and a commit can see that a job of it never ended.

Who ends a transaction claims that first, and reads the record *then*; who writes into it puts its record, and looks
for a claim *then*, before it writes. Of the two at least one sees the other: nothing becomes visible that the commit
has not judged.

The row keys and the conflict keys of what was written lie in columns of their own. A commit reads the conflict keys
alone, 8 bytes each, and holds nothing else of a write, however large; the row keys are read piece by piece by those who
go over the cells.

=======  ==================================================================================================
row key  start timestamp, job (its name, a zero byte), partition, attempt, sequence, table; or that it is *open*, or
         its *seal*; or, with no job, who *ends* the transaction
``m:``   ``table``, ``level`` (``row`` or ``cell``), ``keys`` (conflict keys, 8 bytes each, little-endian), ``columns``
         (JSON list, hexadecimal), ``rows`` (one after the other), ``lengths`` (of the rows, 2 bytes each, big-endian)
seal     ``winners``: JSON list of the (partition, attempt) pairs whose rows count
=======  ==================================================================================================
"""

from __future__ import annotations

import json
import struct
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from client.bulk_writes.manifest_summary import BulkSummary
from client.catalog.entry import ConflictLevel
from client.catalog.own_table import OwnTable
from client.cells import ConflictKeys, write_set_of_columns
from client.errors import InvalidRequest
from commit_table import system_table
from store import ALL_ROWS, Applied, CellStore, Family, KeyRange, Row, RowPut, StoreUnavailable
from store.columns import Bytes, CellColumns, Places, cuts, taken
from store.validation import VALUE_BYTES_MAX

ENTRY_BYTES_MAX = 2**20
"""Row keys and conflict keys in one manifest row: well below the largest cell that HBase takes."""

COLUMNS_BYTES_MAX = VALUE_BYTES_MAX
"""Of the names of columns as they are in one manifest row: 2 for each byte of a name, and 4 for each name."""

START = struct.Struct(">q")
"""How every row key begins: the transaction's start timestamp."""
_ATTEMPT = struct.Struct(">IQI")
_OPEN, _SEAL, _ENTRY = b"\x00", b"\x01", b"\x02"  # a scan that meets the seal comes to every entry after it
END, _CLAIM = b"\x00", b"m:claimant"
"""What follows in the row key of the cell that says who ends the transaction."""
CLAIM_ATTEMPTS_MAX = 10
_AFTER_JOB = b"\x01"
"""Behind a job's name: above all rows of the job, whose name a zero byte ends."""
_LENGTH_BYTES, _KEY_BYTES = 2, 8
_MARKS = (b"m:open", b"m:winners", b"m:table")
"""Of every row but a claim the smallest column: what is read where the row keys alone tell."""
_SUMMARY = (*_MARKS, b"m:level", b"m:keys")
KEY_COLUMNS = (*_MARKS, _CLAIM)
"""The same of every row there is."""
_SCAN_BATCH_ROWS = 100
_PIECES_AT_ONCE = 8
"""Rows of the manifest in one answer, of up to ``ENTRY_BYTES_MAX`` each."""

Attempt = tuple[int, int]
"""(partition, attempt) of a task."""
SWEEP: Final[Attempt] = (2**32 - 1, 0)
"""The attempt by which an overwrite deletes; no task of Spark's is the partition of that number."""


@dataclass(slots=True)
class Job:
    """One bulk write: which attempts count (``None``: it never ended well), and the conflict keys of each, by table."""

    winners: frozenset[Attempt] | None = None
    keys: dict[Attempt, dict[str, list[ConflictKeys]]] = field(default_factory=dict)
    levels: dict[str, set[ConflictLevel]] = field(default_factory=dict)
    """Table → by which conflict level its keys were made."""

    def unrepeated(self) -> dict[str, ConflictKeys]:
        """Table → what attempts wrote which do not count, and no counting attempt wrote: it must not become visible.

        What an overwrite deleted repeats nothing: an attempt that is late with its rows would put them over that.
        """
        counting, others = self._of(counting=True), self._of(counting=False)
        missing = {table: np.setdiff1d(joined(keys), joined(counting.get(table, []))) for table, keys in others.items()}
        return {table: keys for table, keys in missing.items() if len(keys)}

    def _of(self, *, counting: bool) -> dict[str, list[ConflictKeys]]:
        found: dict[str, list[ConflictKeys]] = {}
        for attempt, tables in self.keys.items():
            if attempt != SWEEP and (attempt in (self.winners or ())) == counting:
                for table, keys in tables.items():
                    found.setdefault(table, []).extend(keys)
        return found


@dataclass(slots=True)
class _Counted:
    """One bulk write, and how many rows its attempts recorded in which table."""

    winners: set[Attempt] | None = None
    rows: list[tuple[Attempt, str, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows that one attempt of a job recorded, and the ``columns`` that it wrote in any of them."""

    job: str
    attempt: Attempt
    table: str
    columns: frozenset[bytes]
    data: Bytes
    starts: Places
    lengths: Places

    def rows(self) -> list[bytes]:
        """The row keys."""
        return taken(self.data, self.starts, self.lengths)


class Manifest:
    """The record of bulk writes, of all transactions of an installation."""

    def __init__(self, store: CellStore, root: str) -> None:
        self._store = store
        self._own = OwnTable(store, system_table(root, "manifest"), Family("m", versions_max=1))

    def create(self) -> None:
        """Make the table unless it is there."""
        self._own.name()

    def record(
        self,
        start_timestamp: int,
        job: str,
        attempt: Attempt,
        sequence: int,
        table: str,
        level: ConflictLevel,
        cells: CellColumns,
    ) -> int:
        """Record what is about to be written; returns the next free sequence number of the attempt.

        Raises ``InvalidRequest`` where the names of the columns fill more than one cell; then nothing is recorded.
        """
        columns = json.dumps([column.hex() for column in sorted(cells.columns)]).encode()
        if len(columns) > COLUMNS_BYTES_MAX:
            raise InvalidRequest(
                f"the names of the {len(cells.columns):,} columns that a bulk write into table {table!r} writes at a "
                f"time take {len(columns):,} bytes of its record, which has {COLUMNS_BYTES_MAX:,} for them: write "
                "fewer columns at a time, or such rows through transaction.put and transaction.delete"
            )
        entries = []
        for piece in _pieces(cells):
            key = (
                START.pack(start_timestamp)
                + _job_key(job)
                + _ENTRY
                + _ATTEMPT.pack(*attempt, sequence)
                + table.encode()
            )
            keys = write_set_of_columns(table, piece, by_row=level == "row")
            written = {
                b"m:table": table.encode(),
                b"m:level": level.encode(),
                b"m:keys": keys.astype("<u8").tobytes(),
                b"m:columns": columns,
                b"m:rows": piece.joined_keys(),
                b"m:lengths": piece.key_lengths.astype(">u2").tobytes(),
            }
            entries.append(RowPut(key, written))
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
        """Whether ``claimant``, a text that nobody else uses, is the one that ends the transaction; only one ever is.

        It may be asked again after an error. Raises ``StoreUnavailable``.
        """
        key, value = START.pack(start_timestamp) + END, claimant.encode()
        for _ in range(CLAIM_ATTEMPTS_MAX):
            answer = self._store.compare_and_set(
                self._own.name(), key, check=_CLAIM, expected=None, put=_CLAIM, value=value
            )
            if isinstance(answer, Applied):
                return True
            stored = self._store.get(self._own.name(), key, [_CLAIM]).get(_CLAIM)
            if stored is not None:
                return stored.value == value
        raise StoreUnavailable(f"it cannot be found out who ends transaction {start_timestamp}")

    def is_end_claimed(self, start_timestamp: int) -> bool:
        """Whether somebody ends the transaction, or has. What was recorded before this was asked, and found not to be
        so, is seen by whoever ends it. Raises ``StoreUnavailable``.
        """
        return _CLAIM in self._store.get(self._own.name(), START.pack(start_timestamp) + END, [_CLAIM])

    def is_sealed(self, start_timestamp: int, job: str) -> bool:
        """Whether a job has ended well. Raises ``StoreUnavailable``."""
        key = START.pack(start_timestamp) + _job_key(job) + _SEAL
        return bool(self._store.get(self._own.name(), key, [b"m:winners"]))

    def is_written_besides(self, start_timestamp: int, job: str, winners: Collection[Attempt]) -> bool:
        """Whether an attempt that does not count recorded rows of a job; no key is read.

        Raises ``StoreUnavailable``.
        """
        start, counting = START.pack(start_timestamp), frozenset(winners)
        entries = KeyRange(start + _job_key(job) + _ENTRY, start + job.encode() + _AFTER_JOB)  # they are a job's last
        records = self._store.scan(self._own.name(), entries, _MARKS, batch_rows=_SCAN_BATCH_ROWS)
        attempts = (_ATTEMPT.unpack_from(_entry_of(key)[1])[:2] for key, _ in records)
        return any(attempt not in counting for attempt in attempts)

    def jobs(self, start_timestamp: int) -> dict[str, Job]:
        """Every job on record for a transaction, with its conflict keys, 8 bytes for each row or cell written."""
        jobs: defaultdict[str, Job] = defaultdict(Job)
        for key, cells in self._scan(start_timestamp, _SUMMARY):
            job = jobs[_job_of(key)]
            kind, entry = _entry_of(key)
            if kind == _SEAL:
                winners = json.loads(cells[b"m:winners"].value)
                job.winners = frozenset((partition, attempt) for partition, attempt in winners)
            elif kind == _ENTRY:
                partition, attempt, _ = _ATTEMPT.unpack_from(entry)
                table, level = cells[b"m:table"].value.decode(), cells[b"m:level"].value.decode()
                keys = np.frombuffer(cells[b"m:keys"].value, "<u8").astype(np.uint64)
                job.keys.setdefault((partition, attempt), {}).setdefault(table, []).append(keys)
                job.levels.setdefault(table, set()).add("row" if level == "row" else "cell")
        return dict(jobs)

    def job_ends(self, start_timestamp: int) -> dict[str, bool]:
        """Every job on record for a transaction, and whether it is sealed; no key is read."""
        ends: dict[str, bool] = {}
        for key, _ in self._scan(start_timestamp, _MARKS):
            ends[_job_of(key)] = ends.get(_job_of(key), False) or _entry_of(key)[0] == _SEAL
        return ends

    def jobs_into(self, start_timestamp: int, table: str) -> dict[str, bool]:
        """The jobs that recorded rows of ``table`` for a transaction, and whether each is sealed; no key is read."""
        sealed: set[str] = set()
        found: set[str] = set()
        for key, cells in self._scan(start_timestamp, _MARKS):
            kind, _ = _entry_of(key)
            if kind == _SEAL:
                sealed.add(_job_of(key))
            elif kind == _ENTRY and cells[b"m:table"].value == table.encode():
                found.add(_job_of(key))
        return {job: job in sealed for job in found}

    def is_written_by_others(self, start_timestamp: int, table: str, known: Collection[str]) -> bool:
        """Whether a job that is not ``known`` recorded rows of ``table`` for a transaction.

        It is asked with every batch that is read, and known jobs may have thousands of records: they are passed over.
        """
        start, stop = START.pack(start_timestamp), START.pack(start_timestamp + 1)
        while start:
            records = self._store.scan(self._own.name(), KeyRange(start, stop), _MARKS, batch_rows=_SCAN_BATCH_ROWS)
            start, passed = b"", 0
            for key, cells in records:
                job = _job_of(key)
                if job not in known:
                    if _entry_of(key)[0] == _ENTRY and cells[b"m:table"].value == table.encode():
                        return True
                    continue
                passed += 1
                if passed == _SCAN_BATCH_ROWS:
                    start = START.pack(start_timestamp) + job.encode() + _AFTER_JOB
                    break
        return False

    def summary(self, start_timestamp: int) -> BulkSummary | None:
        """How much is on record of a transaction; ``None``: nothing. No row key is read."""
        jobs: defaultdict[str, _Counted] = defaultdict(_Counted)
        found = BulkSummary()
        for key, cells in self._scan(start_timestamp, (*KEY_COLUMNS, b"m:lengths"), claims=True):
            if key[START.size :] == END:
                found.claimed = True
                continue
            job, (kind, entry) = jobs[_job_of(key)], _entry_of(key)
            if kind == _SEAL:
                job.winners = {(partition, attempt) for partition, attempt in json.loads(cells[b"m:winners"].value)}
            elif kind == _ENTRY:
                partition, attempt, _ = _ATTEMPT.unpack_from(entry)
                rows = len(cells[b"m:lengths"].value) // _LENGTH_BYTES
                job.rows.append(((partition, attempt), cells[b"m:table"].value.decode(), rows))
        found.jobs = len(jobs)
        found.unsealed = sum(job.winners is None for job in jobs.values())
        for job in jobs.values():
            for attempt, table, rows in job.rows:
                if job.winners is None or attempt in job.winners:
                    found.rows[table] = found.rows.get(table, 0) + rows
        return found if jobs or found.claimed else None

    def pieces(self, start_timestamp: int) -> Iterator[Piece]:
        """Everything that any attempt of any job recorded for a transaction, a piece of it in memory at a time."""
        for key, cells in self._scan(
            start_timestamp, (b"m:table", b"m:columns", b"m:rows", b"m:lengths"), batch_rows=_PIECES_AT_ONCE
        ):
            partition, attempt, _ = _ATTEMPT.unpack_from(_entry_of(key)[1])
            lengths = np.frombuffer(cells[b"m:lengths"].value, ">u2").astype(np.int64)
            yield Piece(
                _job_of(key),
                (partition, attempt),
                cells[b"m:table"].value.decode(),
                frozenset(bytes.fromhex(column) for column in json.loads(cells[b"m:columns"].value)),
                np.frombuffer(bytearray(cells[b"m:rows"].value), np.uint8),
                np.cumsum(lengths) - lengths,
                lengths,
            )

    def transactions(self) -> Iterator[int]:
        """Every transaction of which a bulk write is on record."""
        last = None
        for key, _ in self._store.scan(self._own.name(), ALL_ROWS, _MARKS, batch_rows=_SCAN_BATCH_ROWS):
            (start_timestamp,) = START.unpack_from(key)
            if start_timestamp != last:
                last = start_timestamp
                yield start_timestamp

    def forget(self, start_timestamp: int) -> None:
        """Drop the record of a committed transaction whose shadow cells all stand."""
        keys = [key for key, _ in self._scan(start_timestamp, KEY_COLUMNS, claims=True)]
        self._store.delete(self._own.name(), keys, start_timestamp)

    def forget_aborted(self, start_timestamp: int) -> None:
        """Drop the record of an aborted transaction, but for the claim of its end, which it gets if it has none.

        A process that starts over with its handle would find nothing written, and commit that, once the commit table
        has forgotten the abort. Where nothing is on record nothing was written, and nothing is claimed.
        """
        keys = [key for key, _ in self._scan(start_timestamp, KEY_COLUMNS)]
        if keys:
            self.claim_end(start_timestamp, uuid.uuid4().hex)
            self._store.delete(self._own.name(), keys, start_timestamp)

    def _scan(
        self,
        start_timestamp: int,
        columns: Sequence[bytes],
        *,
        claims: bool = False,
        batch_rows: int = _SCAN_BATCH_ROWS,
    ) -> Iterator[tuple[bytes, Row]]:
        key_range = KeyRange(START.pack(start_timestamp), START.pack(start_timestamp + 1))
        for key, cells in self._store.scan(self._own.name(), key_range, columns, batch_rows=batch_rows):
            if claims or key[START.size :] != END:
                yield key, cells


def joined(keys: Sequence[ConflictKeys]) -> ConflictKeys:
    """Conflict keys of several pieces, each once."""
    everything = np.concatenate(keys) if keys else np.empty(0, np.uint64)
    everything.sort()
    is_first = np.ones(len(everything), np.bool_)
    np.not_equal(everything[1:], everything[:-1], out=is_first[1:])  # a tenth of what np.unique takes
    return everything[is_first]


def _job_key(job: str) -> bytes:
    if not job or "\0" in job:
        raise InvalidRequest(f"a job's name is text without zero bytes, not {job!r}")
    return job.encode() + b"\0"


def _job_of(key: bytes) -> str:
    return key[START.size :].partition(b"\0")[0].decode()


def _entry_of(key: bytes) -> tuple[bytes, bytes]:
    """What a manifest row is, and what follows in its key."""
    rest = key[START.size :].partition(b"\0")[2]
    return rest[:1], rest[1:]


def _pieces(cells: CellColumns) -> Iterator[CellColumns]:
    """Rows in pieces of bounded size: their keys, and as many conflict keys as they could have."""
    sizes = cells.key_lengths + _LENGTH_BYTES + _KEY_BYTES * len(cells.columns)
    for first, last in cuts(sizes, ENTRY_BYTES_MAX, cells.rows):
        yield cells.slice(first, last)
