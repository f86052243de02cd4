"""The cells of many commits at once, as columns of bytes: ``commit_table.layout`` for whole batches.

Invariant: line by line they are what ``layout.row_key``, ``commit_column`` and ``commit_value`` say; a test holds that.
Whoever only reads the commit table has no need of this module, nor of the compiler that it loads.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from commit_table import layout
from commit_table.timestamps import COUNTER_BITS, TIMESTAMP_MAX, TIMESTAMPS_PER_MILLISECOND
from kernels import kernel
from store.lines import ByteLines, write_number

Timestamps = npt.NDArray[np.int64]

_TIMESTAMP_BYTES = 8
_COUNTER_BYTES = layout.COUNTER_BYTES
_PREFIX = np.frombuffer(layout.COMMIT_FAMILY.name.encode() + b":", np.uint8)
_SALT_FACTOR = np.uint64(layout.GOLDEN_RATIO_64)
_SALT_SHIFT = np.uint64(56)


def commit_columns(
    start_timestamps: Timestamps, commit_timestamps: Timestamps
) -> tuple[ByteLines, ByteLines, ByteLines]:
    """Rows, columns and values of the commits, one line each, in the order of their start timestamps.

    So the commits of one millisecond, which share a row, are consecutive. ``ValueError`` for what is no start
    timestamp, for a transaction that is there twice, and for arrays that are not two of int64 of one length.
    """
    starts, commits = _usable(start_timestamps), _usable(commit_timestamps)
    if starts.size != commits.size:
        raise ValueError(f"{starts.size} transactions have {commits.size} commit timestamps: each needs one")
    order = np.argsort(starts, kind="stable")  # fast on what is nearly in order, as start timestamps are
    rows = np.empty((starts.size, 1 + _TIMESTAMP_BYTES), np.uint8)
    columns = np.empty((starts.size, _PREFIX.size + _COUNTER_BYTES), np.uint8)
    values = np.empty((starts.size, _TIMESTAMP_BYTES), np.uint8)
    wrong = lay_out(starts, commits, order, rows, columns, values)
    if wrong >= 0:
        raise ValueError(_wrong(int(starts[order[wrong]])))
    return rows, columns, values


def _usable(timestamps: Timestamps) -> Timestamps:
    """As the kernel is compiled for: writable and without gaps; hardly ever a copy."""
    if timestamps.ndim != 1 or timestamps.dtype != np.int64:
        raise ValueError(f"timestamps are a column of int64, not {timestamps.dtype} of shape {timestamps.shape}")
    flags = timestamps.flags
    return timestamps if flags.c_contiguous and flags.writeable else np.array(timestamps, order="C")


def _wrong(start_timestamp: int) -> str:
    if 0 < start_timestamp < TIMESTAMP_MAX:
        return f"transaction {start_timestamp} is there twice: a transaction commits once"
    return f"a start timestamp lies between 0 and {TIMESTAMP_MAX}, not {start_timestamp}"


@kernel("int64(int64[::1], int64[::1], int64[::1], uint8[:, ::1], uint8[:, ::1], uint8[:, ::1])")
def lay_out(
    starts: Timestamps,
    commits: Timestamps,
    order: Timestamps,
    rows: ByteLines,
    columns: ByteLines,
    values: ByteLines,
) -> int:
    """Fill the lines in ``order``; returns the place in it of the first that cannot be recorded, or -1."""
    before = 0
    for place in range(order.shape[0]):
        start = starts[order[place]]
        if not before < start < TIMESTAMP_MAX:
            return place
        before = start
        block = start >> COUNTER_BITS
        rows[place, 0] = (np.uint64(block) * _SALT_FACTOR) >> _SALT_SHIFT
        write_number(rows[place], 1, block, _TIMESTAMP_BYTES)
        for letter in range(_PREFIX.shape[0]):
            columns[place, letter] = _PREFIX[letter]
        write_number(columns[place], _PREFIX.shape[0], start & (TIMESTAMPS_PER_MILLISECOND - 1), _COUNTER_BYTES)
        write_number(values[place], 0, commits[order[place]], _TIMESTAMP_BYTES)
    return -1
