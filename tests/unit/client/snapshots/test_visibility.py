"""Which version a snapshot sees, over every mix of shadow cells and outcomes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.cells import ABORTED_SHADOW, encode_shadow, shadow_column
from client.snapshots.visibility import NOT_COMMITTED, OPEN, View, settle, with_bookkeeping
from store import Cell

COLUMN = b"f:q"
SHADOW = shadow_column(b"f")
VIEW = View(snapshot=100, epoch=50, own=110)


def nobody_knows(writer: int) -> int:
    return OPEN


def test_a_version_of_an_unknown_writer_is_open() -> None:
    assert settle({COLUMN: Cell(b"v", 90)}, VIEW, nobody_knows).open == {COLUMN: 90}


@pytest.mark.parametrize(
    ("commit_timestamp", "visible"), [(100, True), (101, False), (91, True), (ABORTED_SHADOW, False)]
)
def test_its_own_shadow_cell_settles_a_version(commit_timestamp: int, visible: bool) -> None:
    row = {COLUMN: Cell(b"v", 90), SHADOW: Cell(encode_shadow(commit_timestamp), 90)}
    settled = settle(row, VIEW, nobody_knows)
    assert (COLUMN in settled.visible) is visible
    assert (COLUMN in settled.hidden) is not visible
    assert not settled.unshadowed


def test_another_writers_shadow_cell_settles_nothing() -> None:
    row = {COLUMN: Cell(b"v", 90), SHADOW: Cell(encode_shadow(96), 95)}
    assert settle(row, VIEW, nobody_knows).open == {COLUMN: 90}


def test_a_writers_shadow_cell_settles_all_its_families() -> None:
    row = {COLUMN: Cell(b"v", 90), shadow_column(b"g"): Cell(encode_shadow(91), 90)}
    assert settle(row, VIEW, nobody_knows).visible == {COLUMN: b"v"}


def test_own_versions_are_visible_without_any_outcome() -> None:
    assert settle({COLUMN: Cell(b"v", 110)}, VIEW, nobody_knows).visible == {COLUMN: b"v"}


def test_a_version_between_snapshot_and_own_is_hidden_without_a_question() -> None:
    assert settle({COLUMN: Cell(b"v", 105)}, VIEW, nobody_knows).hidden == {COLUMN: 105}


@pytest.mark.parametrize(("shadow", "missing"), [(None, True), (80, True), (95, False)])
def test_a_shadow_cell_is_missing_for_certain_only_if_the_newest_is_older(shadow: int | None, missing: bool) -> None:
    row = {COLUMN: Cell(b"v", 90)} | ({} if shadow is None else {SHADOW: Cell(encode_shadow(shadow + 1), shadow)})
    settled = settle(row, VIEW, {90: 92}.__getitem__)
    assert settled.visible == {COLUMN: b"v"}
    assert settled.unshadowed == ({b"f": (90, 92)} if missing else {})


@given(
    writer=st.integers(1, 120),
    shadow_writer=st.none() | st.integers(1, 120),
    commit_after=st.none() | st.integers(1, 60),
    known=st.booleans(),
)
def test_every_version_is_visible_hidden_or_open_and_visible_only_by_the_rule(
    writer: int, shadow_writer: int | None, commit_after: int | None, known: bool
) -> None:
    outcome = NOT_COMMITTED if commit_after is None else writer + commit_after
    row = {COLUMN: Cell(b"v", writer)}
    if shadow_writer is not None:
        row[SHADOW] = Cell(encode_shadow(outcome if shadow_writer == writer else shadow_writer + 1), shadow_writer)
    settled = settle(row, VIEW, lambda asked: outcome if known else OPEN)
    assert (COLUMN in settled.visible) + (COLUMN in settled.hidden) + (COLUMN in settled.open) == 1
    by_the_rule = writer == VIEW.own or NOT_COMMITTED < outcome <= VIEW.snapshot
    if COLUMN not in settled.open:
        assert (COLUMN in settled.visible) is by_the_rule


def test_a_cell_at_timestamp_zero_is_nobodys() -> None:
    """No transaction has that start timestamp, a reader without versions of its own included."""
    settled = settle({COLUMN: Cell(b"v", 0)}, View(snapshot=100, epoch=50), lambda writer: 1)
    assert settled.hidden == {COLUMN: 0}
    assert not settled.visible


def test_the_bound_lets_own_versions_through() -> None:
    assert VIEW.before == 111
    assert View(snapshot=100, epoch=50).before == 101


def test_only_writers_from_an_older_epoch_are_fenced() -> None:
    assert VIEW.must_fence(49)
    assert not VIEW.must_fence(50)


def test_a_choice_brings_its_shadow_cells_and_row_markers() -> None:
    assert with_bookkeeping([b"f:q", b"g", b"f:r", b"g:x"]) == [b"g", b"f:q", b"f:r", b"f:\x00", b"f:\x00row"]
