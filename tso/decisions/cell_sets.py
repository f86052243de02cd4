"""Sets of cells of very large write sets: kernels over plain arrays.

A set is an array of cell ids at places given by a hash (open addressing with linear probing, at most four fifths full:
10 bytes a cell), with one commit timestamp for all of it. The cell id 0 marks an empty place; that it is in the set
itself is noted apart.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from kernels import kernel
from tso.decisions.recency_index import RecencyTable
from tso.decisions.recency_kernels import TOUCHED_AT_ONCE, look_up, touch_all

Cells: TypeAlias = npt.NDArray[np.uint64]
Number: TypeAlias = int | np.int64

SETS_MAX: Final = 8
"""Sets at once. Each is one more look for every cell that is judged by a snapshot before it."""
NEVER: Final = 2**63 - 1
"""The time of a set whose transaction is not decided: later than every snapshot, so that nobody passes it."""


class CellSets(NamedTuple):
    """``places``: of each set; ``times`` i64[SETS_MAX]: its commit timestamp, ``NEVER``, or 0 where there is none;
    ``zeros`` u8[SETS_MAX]: whether the cell id 0 is in it; ``seed`` u64[1]; ``touched`` u64[1]: of no meaning.
    """

    places: tuple[Cells, ...]
    times: npt.NDArray[np.int64]
    zeros: npt.NDArray[np.uint8]
    seed: Cells
    touched: Cells


@kernel()
def _first_place(places: Cells, seed: np.uint64, cell: np.uint64) -> np.int64:
    mixed = (cell ^ seed) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(32)
    return np.int64(((mixed >> np.uint64(32)) * np.uint64(places.size)) >> np.uint64(32))


@kernel(inline=True)
def _touch_all(places: Cells, seed: np.uint64, cells: Cells, touched: Cells) -> None:
    """Load the places of a batch of cells: their cache misses overlap. ``touched`` keeps it from being left out."""
    mixed = np.uint64(0)
    for number in range(cells.size):
        mixed ^= places[_first_place(places, seed, cells[number])]
    touched[0] ^= mixed


@kernel(inline=True)
def _place_of(places: Cells, seed: np.uint64, cell: np.uint64) -> np.int64:
    """Where a cell is that is not 0, or else the empty place for it."""
    place = _first_place(places, seed, cell)
    while places[place] != np.uint64(0) and places[place] != cell:
        place += np.int64(1)
        if place == places.size:
            place = np.int64(0)
    return np.int64(place)


@kernel()
def _contains_any(places: Cells, has_zero: bool, seed: np.uint64, cells: Cells, touched: Cells) -> bool:
    """Whether one of a batch of cells is in a set."""
    _touch_all(places, seed, cells, touched)
    for number in range(cells.size):
        cell = cells[number]
        if has_zero if cell == np.uint64(0) else places[_place_of(places, seed, cell)] == cell:
            return True
    return False


@kernel()
def any_is_in_a_set_after(sets: CellSets, cells: Cells, snapshot: Number, but: Number) -> bool:
    """Whether a set other than ``but`` that was committed after ``snapshot``, or is not decided, has one of the cells.

    Set by set and not cell by cell: numba counts the references to every array of ``sets`` that a call is given, which
    takes five times as long as to look for one cell. Sets before the snapshot cost nothing: what loads table after
    table does not get slower by what it has loaded.
    """
    for number in range(SETS_MAX):
        if sets.times[number] <= snapshot or number == but:
            continue
        if _contains_any(sets.places[number], sets.zeros[number] != 0, sets.seed[0], cells, sets.touched):
            return True
    return False


@kernel()
def _is_taken(sets: CellSets, own: Number, written: RecencyTable, batch: Cells, snapshot: Number) -> bool:
    """Whether one of a batch of cells was written after the snapshot, or is in another set that may be."""
    touch_all(written, batch)
    latest = np.int64(0)
    for number in range(batch.size):
        latest = max(latest, look_up(written, batch[number]))
    return bool(latest > snapshot or any_is_in_a_set_after(sets, batch, snapshot, own))


@kernel()
def _enter_all(places: Cells, seed: np.uint64, cells: Cells, touched: Cells) -> bool:
    """Put a batch of cells into a set; whether the id 0, which needs no place, is among them."""
    has_zero = False
    _touch_all(places, seed, cells, touched)
    for number in range(cells.size):
        cell = cells[number]
        if cell == np.uint64(0):
            has_zero = True
        else:
            places[_place_of(places, seed, cell)] = cell
    return has_zero


@kernel()
def add_free_of_conflicts(
    sets: CellSets, own: Number, written: RecencyTable, cells: Cells, entered: Number, snapshot: Number
) -> bool:
    """Put the first ``entered`` cells into set ``own``; false where one of all was written after ``snapshot``. Some may
    have been put there then.
    """
    places, seed = sets.places[own], sets.seed[0]
    for first in range(0, cells.size, TOUCHED_AT_ONCE):
        batch = cells[first : first + TOUCHED_AT_ONCE]
        if _is_taken(sets, own, written, batch, snapshot):
            return False
        if _enter_all(places, seed, batch[: max(0, entered - first)], sets.touched):
            sets.zeros[own] = 1
    return True
