"""Transactions whose outcome nobody learned: read, they did commit, and their commit needs a place in the order."""

from __future__ import annotations

import pytest

from histories import History, Key, Kind, check
from tests.unit.histories.made_up import committed, history, reader, unknown

BEFORE = committed(2, 1, 3, "w x 2, w y 2")
LOST = unknown(5, 4, "w x 5, w y 5")

CONSISTENT: dict[str, tuple[History, dict[Key, int | None] | None]] = {
    "never seen": (history(BEFORE, LOST, reader(9, 8, "r x 2, r y 2")), {"x": 2, "y": 2}),
    "seen": (history(BEFORE, LOST, reader(9, 8, "r x 5, r y 5")), {"x": 5, "y": 5}),
    "seen by a later snapshot only": (history(BEFORE, LOST, reader(7, 6, "r x 2"), reader(9, 8, "r x 5")), None),
    "seen at the end only": (history(BEFORE, LOST, reader(9, 8, "r x 2")), {"x": 5, "y": 5}),
    "overwritten by one that saw it": (
        history(BEFORE, LOST, reader(9, 8, "r x 5"), committed(12, 11, 13, "r x 5, w x 12"), reader(20, 15, "r x 12")),
        {"x": 12, "y": 5},
    ),
    "overwritten by one that did not look, after it": (
        history(BEFORE, LOST, reader(9, 8, "r x 5"), committed(7, 6, 12, "w x 7")),
        {"x": 7, "y": 5},
    ),
    "overwritten by one that saw it, with nobody else": (
        history(BEFORE, LOST, committed(12, 11, 13, "r x 5, w x 12")),
        {"x": 12, "y": 5},
    ),
    "a deletion that was seen": (history(BEFORE, unknown(5, 4, "w x -"), reader(9, 8, "r x -")), {"x": None, "y": 2}),
    "two deletions, and nobody can say which": (
        history(BEFORE, unknown(5, 4, "w x -"), unknown(6, 4, "w x -"), reader(9, 8, "r x -, r y 2")),
        None,
    ),
    "one deletes what another wrote, and it looks as before": (
        history(LOST, reader(7, 6, "r x 5"), unknown(8, 6, "w x -"), reader(20, 15, "r x -")),
        None,
    ),
    "two of them, one after the other": (
        history(unknown(5, 4, "w x 5"), unknown(9, 8, "r x 5, w x 9"), reader(12, 11, "r x 9")),
        {"x": 9},
    ),
}

IMPOSSIBLE: dict[str, tuple[History, dict[Key, int | None] | None, set[int]]] = {
    "half of it was seen": (history(BEFORE, LOST, reader(9, 8, "r x 5, r y 2")), None, {5, 9}),
    "seen and gone again": (history(BEFORE, LOST, reader(9, 8, "r x 5"), reader(20, 15, "r x 2")), None, {5, 9, 20}),
    "seen and gone at the end": (history(BEFORE, LOST, reader(9, 8, "r x 5")), {"x": 2, "y": 5}, {5, 9}),
    "seen below its own start": (history(LOST, reader(9, 4, "r x 5")), None, {5, 9}),
    "written over by one that did not see it": (
        history(BEFORE, LOST, reader(9, 8, "r x 5"), committed(7, 5, 12, "w x 7")),
        None,
        {5, 7, 9},
    ),
    "older than what it should have replaced": (
        history(BEFORE, LOST, committed(7, 6, 10, "w x 7"), reader(12, 11, "r x 5")),
        None,
        {5, 7, 12},
    ),
    "a deletion that was seen, and gone again": (
        history(BEFORE, unknown(5, 4, "w x -"), reader(9, 8, "r x -"), reader(20, 15, "r x 2")),
        None,
        {5, 9, 20},
    ),
    "seen by one, missed by a later reader of another key": (
        history(LOST, reader(12, 9, "r x 5"), reader(11, 7, "r y -"), reader(10, 9, "r y -")),
        None,
        {5, 10, 12},
    ),
    "seen by one, missed by a writer with the same snapshot": (
        history(LOST, reader(22, 10, "r x 5"), committed(12, 10, 13, "r y -, w y 12")),
        None,
        {5, 12, 22},
    ),
}


@pytest.mark.parametrize("name", CONSISTENT)
def test_what_can_be_is_taken_for_consistent(name: str) -> None:
    made_up, final_state = CONSISTENT[name]
    assert check(made_up, final_state) == []


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_cannot_be_is_found(name: str) -> None:
    made_up, final_state, involved = IMPOSSIBLE[name]
    (found,) = check(made_up, final_state)
    assert found.kind is Kind.NO_PLACE_FOR_COMMIT
    assert set(found.transactions) == involved
    assert "nobody learned the outcome of transaction 5" in found.text


def test_without_timestamps_in_the_ids_the_snapshot_is_the_lower_bound() -> None:
    transactions = unknown(5, 4, "w x 5"), reader(9, 5, "r x 5")
    assert check(History(transactions, ids_are_timestamps=False)) == []
    assert check(History(transactions))
