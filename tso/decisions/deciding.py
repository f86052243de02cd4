"""The decision over a batch of commits, as one kernel over columns.

It walks the transactions in the order of their commit timestamps, so that each is judged by what those before it in the
batch have written. What can be known without the maps (who was aborted or has outlived its life) comes in as a column.
The rule is DESIGN section 7's, after "A Critique of Snapshot Isolation" (Ferro and Yabandeh, EuroSys 2012).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kernels import kernel
from tso.decisions.cell_sets import CellSets, any_is_in_a_set_after
from tso.decisions.recency_index import FORGOTTEN, RecencyTable
from tso.decisions.recency_kernels import enter, look_up, touch_all
from wire import Reason

Numbers: TypeAlias = npt.NDArray[np.int64]
Cells: TypeAlias = npt.NDArray[np.uint64]
Codes: TypeAlias = npt.NDArray[np.uint8]
Number: TypeAlias = int | np.int64

TOUCHED_AT_ONCE = 256
"""Transactions whose memory is loaded ahead; more would not stay in the cache until they are decided."""
_COMMITTED, _CONFLICT = int(Reason.COMMITTED), int(Reason.CONFLICT)
_TOO_OLD, _TOO_LARGE = int(Reason.TOO_OLD), int(Reason.TOO_LARGE)


@kernel()
def decide(
    starts: Numbers,
    snapshots: Numbers,
    offsets: Numbers,
    guards: Numbers,
    cells: Cells,
    standing: Codes,
    first_timestamp: Number,
    floor: Number,
    written: RecencyTable,
    large: CellSets,
    decisions: RecencyTable,
    times: Numbers,
    reasons: Codes,
) -> int:
    """Decide over transactions ``starts``; transaction i may commit at ``first_timestamp + i``. Returns how many do.

    ``standing``: the reason for which a transaction is refused whatever it wrote, or 0. ``floor``: decisions up to it
    are not remembered. ``written``: cell id → last commit, but for those of ``large``; ``decisions``: start timestamp →
    ``decision(…)``. Fills ``times`` (0 where not committed) and ``reasons``.
    """
    newest_large, new = large.times.max(), 0
    for place in range(starts.size):
        if place % TOUCHED_AT_ONCE == 0:
            end = min(place + TOUCHED_AT_ONCE, starts.size)
            touch_all(decisions, starts[place:end].view(np.uint64))
            touch_all(written, cells[offsets[place] : offsets[end]])
        start, timestamp = starts[place], np.int64(first_timestamp + place)
        times[place] = 0
        known = look_up(decisions, np.uint64(start))
        if known != 0:
            refused = known & np.int64(1)
            reasons[place] = _CONFLICT if refused else _COMMITTED
            times[place] = np.int64(0) if refused else known >> np.int64(1)
            continue
        remembered_from = max(floor, written.state[FORGOTTEN], decisions.state[FORGOTTEN] >> np.int64(1))
        if snapshots[place] < remembered_from:
            reasons[place] = _TOO_OLD  # first, since it may have committed: the others say that it did not
        elif standing[place] != 0:
            reasons[place] = standing[place]
        elif _is_written_after(written, cells, offsets[place], offsets[place + 1], snapshots[place]) or (
            newest_large > snapshots[place]
            and any_is_in_a_set_after(large, cells[offsets[place] : offsets[place + 1]], snapshots[place], -1)
        ):
            reasons[place] = _CONFLICT
            enter(decisions, np.uint64(start), decision(timestamp, 1))
        else:
            new += 1
            reasons[place] = _COMMITTED
            times[place] = timestamp
            for cell in range(offsets[place], offsets[place + 1] - guards[place]):
                enter(written, cells[cell], timestamp)
            enter(decisions, np.uint64(start), decision(timestamp, 0))
    return new


@kernel()
def are_all_possible(starts: Numbers, snapshots: Numbers, validated: Numbers, last: Number) -> bool:
    """Whether each snapshot lies below its start timestamp, and nothing above ``last``, the latest timestamp given."""
    possible = True
    for place in range(starts.size):
        possible &= snapshots[place] < starts[place] <= last and validated[place] <= last
    return possible


@kernel()
def look_over(
    starts: Numbers,
    snapshots: Numbers,
    validated: Numbers,
    offsets: Numbers,
    guards: Numbers,
    cells_max: Number,
    outlived: Number,
    free_up_to: Numbers,
    standing: Codes,
) -> bool:
    """What needs no map: fills up to where each is free of conflicts, and ``standing`` where a write set is too large.

    Returns whether any of the transactions may have outlived its life: it began at or before ``outlived``.
    """
    any_old = False
    for place in range(starts.size):
        any_old |= starts[place] <= outlived
        free_up_to[place] = max(snapshots[place], validated[place])
        entered = offsets[place + 1] - offsets[place] - guards[place]
        standing[place] = _TOO_LARGE if entered > cells_max else 0
    return any_old


@kernel(inline=True)
def decision(timestamp: Number, refused: Number) -> np.int64:
    """How a decision made at a timestamp is remembered: the timestamp doubled, and odd where it was a refusal."""
    return np.int64(timestamp) * np.int64(2) + np.int64(refused)


@kernel(inline=True)
def _is_written_after(written: RecencyTable, cells: Cells, begin: Number, end: Number, snapshot: Number) -> bool:
    found = False
    for cell in range(begin, end):
        found = found or bool(look_up(written, cells[cell]) > snapshot)
    return found
