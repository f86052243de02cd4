"""Write sets that come in parts: decided as if they had come at once, at nobody else's cost."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.tso.decisions.by_hand import EPOCH, NOW, begin, commit_one, make, reasons, settle
from tso.decisions.large_write_sets import LargeWriteSets
from tso.decisions.oracle import Begun, Decided, Impossible, Later, Moment, Oracle
from tso.decisions.recency_kernels import TOUCHED_AT_ONCE
from wire import LargeCommitRequest, Reason, WriteSetPart, WriteSetTaken
from wire.large_commits import PART_CELLS_MAX


def part(begun: Begun, cells: list[int], total: int, position: int = 0, guards: int = 0) -> WriteSetPart:
    columns = np.array(cells, np.uint64)
    return WriteSetPart(begun.first_start_timestamp, begun.snapshot, 0, total, guards, position, columns)


def whole(begun: Begun, total: int) -> LargeCommitRequest:
    return LargeCommitRequest(begun.first_start_timestamp, begun.snapshot, 0, total)


def reason_of(oracle: Oracle, answer: object) -> Reason:
    """Of a decision, which is settled with this."""
    assert isinstance(answer, Decided)
    return reasons(settle(oracle, answer))[0]


def commit_small(oracle: Oracle, begun: Begun, cells: list[int]) -> Reason:
    return commit_one(oracle, begun.first_start_timestamp, begun.snapshot, cells)


def taken(answer: object) -> int:
    assert isinstance(answer, WriteSetTaken)
    return answer.cells


def commit_large(oracle: Oracle, begun: Begun, cells: list[int], guards: int = 0) -> Reason:
    """In parts of three."""
    for position in range(0, len(cells), 3):
        answer = oracle.take_part(part(begun, cells[position : position + 3], len(cells), position, guards), NOW)
        if isinstance(answer, Decided):
            return reason_of(oracle, answer)
    return reason_of(oracle, oracle.commit_large(whole(begun, len(cells)), NOW))


def test_a_write_set_in_parts_commits_and_conflicts_like_any_other() -> None:
    oracle = make()
    large, before = begin(oracle), begin(oracle)
    assert commit_large(oracle, large, [0, 1, 2, 3, 2**64 - 1, 5, 6]) is Reason.COMMITTED
    assert commit_small(oracle, before, [2**64 - 1]) is Reason.CONFLICT
    for cell in (0, 3, 6):
        assert commit_small(oracle, Begun(before.first_start_timestamp, 1, before.snapshot), [cell]) is Reason.CONFLICT
    after = begin(oracle)
    assert commit_small(oracle, after, [0, 6, 2**64 - 1]) is Reason.COMMITTED
    assert len(oracle.conflicts) == 3, "it took no place in the conflict map"


def test_a_cell_that_was_written_since_its_snapshot_refuses_it_at_once_and_for_good() -> None:
    oracle = make()
    large, small = begin(oracle), begin(oracle)
    commit_small(oracle, small, [7])
    assert taken(oracle.take_part(part(large, [1, 2], 4), NOW)) == 2
    assert reason_of(oracle, oracle.take_part(part(large, [7, 8], 4, 2), NOW)) is Reason.CONFLICT
    assert reason_of(oracle, oracle.take_part(part(large, [1, 2], 4), NOW)) is Reason.CONFLICT
    assert reason_of(oracle, oracle.commit_large(whole(large, 4), NOW)) is Reason.CONFLICT
    assert commit_small(oracle, begin(oracle), [1, 2]) is Reason.COMMITTED, "what it held is free"


def test_what_is_taken_is_held_for_it_and_let_go_when_nobody_goes_on() -> None:
    oracle = make(large_commit_idle_ms_max=1000)
    large, rival, late = begin(oracle), begin(oracle), begin(oracle)
    oracle.take_part(part(large, [1, 2], 4), NOW)
    assert commit_small(oracle, rival, [2]) is Reason.CONFLICT
    oracle.observe(Moment(0, 1000.0))
    assert commit_small(oracle, late, [2]) is Reason.COMMITTED
    assert taken(oracle.take_part(part(large, [3, 4], 4, 2), NOW)) == 0, "it has to come again from the start"


@pytest.mark.parametrize("place", [0, TOUCHED_AT_ONCE - 1, TOUCHED_AT_ONCE, PART_CELLS_MAX - 1])
def test_every_cell_of_a_part_is_checked_and_held(place: int) -> None:
    oracle, cells, total = make(), list(range(1, PART_CELLS_MAX + 1)), PART_CELLS_MAX + 1
    late, large, small = begin(oracle), begin(oracle), begin(oracle)
    assert commit_small(oracle, small, [cells[place]]) is Reason.COMMITTED
    assert reason_of(oracle, oracle.take_part(part(late, cells, total), NOW)) is Reason.CONFLICT
    assert taken(oracle.take_part(part(begin(oracle), cells, total), NOW)) == PART_CELLS_MAX
    assert commit_small(oracle, begin(oracle), [cells[place]]) is Reason.CONFLICT
    assert reason_of(oracle, oracle.take_part(part(large, cells[place : place + 1], total), NOW)) is Reason.CONFLICT


def test_two_that_overlap_cannot_both_commit() -> None:
    oracle = make()
    one, two = begin(oracle), begin(oracle)
    oracle.take_part(part(one, [1, 2], 3), NOW)
    assert reason_of(oracle, oracle.take_part(part(two, [2, 3], 3), NOW)) is Reason.CONFLICT
    oracle.take_part(part(one, [3], 3, 2), NOW)
    assert reason_of(oracle, oracle.commit_large(whole(one, 3), NOW)) is Reason.COMMITTED


@pytest.mark.parametrize("distance", [0, 1])
def test_one_that_commits_right_after_a_snapshot_counts(distance: int) -> None:
    """And one that commits right at it does not: the snapshot shows it."""
    oracle = make()
    assert commit_large(oracle, begin(oracle), [1, 2, 3, 4]) is Reason.COMMITTED
    committed = int(oracle.conflicts._large.table.times.max())
    begun = begin(oracle, 2)
    expected = Reason.CONFLICT if distance else Reason.COMMITTED
    for place, commit in enumerate((commit_small, commit_large)):
        late = Begun(begun.first_start_timestamp + place, 1, committed - distance)
        assert commit(oracle, late, [4 - place]) is expected


def test_its_guards_are_checked_and_not_held() -> None:
    oracle = make()
    large, other = begin(oracle), begin(oracle)
    assert commit_large(oracle, large, [1, 2, 3, 4, 9], guards=2) is Reason.COMMITTED
    assert commit_small(oracle, other, [4, 9]) is Reason.COMMITTED
    late = Begun(begin(oracle).first_start_timestamp, 1, other.snapshot)
    assert commit_large(oracle, late, [11, 12, 13, 9], guards=1) is Reason.CONFLICT


def test_a_guard_that_is_written_before_the_commit_refuses_it() -> None:
    oracle = make()
    large, fence = begin(oracle), begin(oracle)
    assert taken(oracle.take_part(part(large, [1, 2, 9], 3, guards=1), NOW)) == 3
    assert commit_small(oracle, fence, [9]) is Reason.COMMITTED, "a guard is not held"
    assert reason_of(oracle, oracle.commit_large(whole(large, 3), NOW)) is Reason.CONFLICT
    assert reason_of(oracle, oracle.commit_large(whole(large, 3), NOW)) is Reason.CONFLICT


def test_guards_that_cannot_be_judged_any_more_make_it_too_old() -> None:
    oracle = make(conflict_map_entries_max=2, commit_share_max=1)
    guarded, plain = begin(oracle), begin(oracle)
    oracle.take_part(part(guarded, [1, 2, 9], 3, guards=1), NOW)
    oracle.take_part(part(plain, [3, 4], 2), NOW)
    assert commit_small(oracle, begin(oracle), [9]) is Reason.COMMITTED
    for cells in ([11, 12], [13, 14], [15, 16]):
        assert commit_small(oracle, begin(oracle), cells) is Reason.COMMITTED
    assert reason_of(oracle, oracle.commit_large(whole(guarded, 3), NOW)) is Reason.TOO_OLD
    assert reason_of(oracle, oracle.commit_large(whole(plain, 2), NOW)) is Reason.COMMITTED, (
        "what is held needs no look"
    )


@pytest.mark.parametrize(
    ("first", "later", "position"),
    [([1, 2, 8, 9], [9], 3), ([1, 2, 9], [8], 3)],
    ids=["a part that comes again", "a part with another guard"],
)
def test_a_later_part_does_not_hide_what_was_written_to_a_guard_and_forgotten(
    first: list[int], later: list[int], position: int
) -> None:
    oracle = make(large_commit_cells_max=6)
    guarded = begin(oracle)
    assert taken(oracle.take_part(part(guarded, first, 4, guards=2), NOW)) == len(first)
    looked_at = oracle.range.last
    assert commit_large(oracle, begin(oracle), [9, 21, 22, 23]) is Reason.COMMITTED, "a guard is not held"
    assert taken(oracle.take_part(part(guarded, later, 4, position, guards=2), NOW)) == 4
    assert isinstance(oracle.take_part(part(begin(oracle), [31], 1), NOW), WriteSetTaken)
    assert looked_at < oracle.conflicts.low_watermark, "to make room it was forgotten who wrote 9"
    assert reason_of(oracle, oracle.commit_large(whole(guarded, 4), NOW)) is Reason.TOO_OLD


def test_more_guards_than_one_commit_may_have_cells_are_too_large() -> None:
    oracle = make(conflict_map_entries_max=4, commit_share_max=0.5)
    fits, beyond = begin(oracle), begin(oracle)
    assert taken(oracle.take_part(part(fits, [1, 8], 3, guards=2), NOW)) == 2
    assert reason_of(oracle, oracle.take_part(part(beyond, [2, 3], 4, guards=3), NOW)) is Reason.TOO_LARGE
    assert commit_small(oracle, begin(oracle), [2, 3]) is Reason.COMMITTED, "nothing of it was taken"


def test_what_is_kept_of_a_part_does_not_keep_its_frame() -> None:
    oracle = make()
    guarded = begin(oracle)
    coming = part(guarded, [1, 2, 8], 4, guards=2)
    frame = weakref.ref(coming.cells)
    assert taken(oracle.take_part(coming, NOW)) == 3
    del coming
    assert frame() is None
    assert taken(oracle.take_part(part(guarded, [9], 4, 3, guards=2), NOW)) == 4
    assert commit_small(oracle, begin(oracle), [8]) is Reason.COMMITTED
    assert reason_of(oracle, oracle.commit_large(whole(guarded, 4), NOW)) is Reason.CONFLICT


@pytest.mark.parametrize("written", [7, 8, 9])
def test_each_guard_is_looked_at_in_the_end_however_the_parts_overlapped(written: int) -> None:
    oracle = make()
    guarded = begin(oracle)
    cells = [1, 2, 7, 8, 9]
    for first, end in ((0, 3), (1, 4), (4, 5), (2, 5)):
        oracle.take_part(part(guarded, cells[first:end], 5, first, guards=3), NOW)
    assert commit_small(oracle, begin(oracle), [written]) is Reason.COMMITTED
    assert reason_of(oracle, oracle.commit_large(whole(guarded, 5), NOW)) is Reason.CONFLICT


def test_parts_that_come_twice_or_after_a_lost_one_are_known() -> None:
    oracle = make()
    begun = begin(oracle)
    assert taken(oracle.take_part(part(begun, [3], 4, 2), NOW)) == 0
    assert taken(oracle.commit_large(whole(begun, 4), NOW)) == 0
    assert taken(oracle.take_part(part(begun, [1, 2], 4), NOW)) == 2
    assert taken(oracle.take_part(part(begun, [1, 2], 4), NOW)) == 2
    assert taken(oracle.take_part(part(begun, [2, 3], 4, 1), NOW)) == 3
    assert taken(oracle.commit_large(whole(begun, 4), NOW)) == 3
    assert taken(oracle.take_part(part(begun, [4], 4, 3), NOW)) == 4
    assert taken(oracle.commit_large(whole(begun, 5), NOW)) == 0, "that is another write set"
    assert reason_of(oracle, oracle.commit_large(whole(begun, 4), NOW)) is Reason.COMMITTED


def test_a_commit_asked_again_gets_its_answer() -> None:
    oracle = make()
    begun = begin(oracle)
    oracle.take_part(part(begun, [1], 1), NOW)
    first, again = (oracle.commit_large(whole(begun, 1), NOW) for _ in range(2))
    assert isinstance(first, Decided)
    assert isinstance(again, Decided)
    assert first.times.tolist() == again.times.tolist()
    assert again.start_timestamps.size == 0, "it is not written a second time"
    parts = oracle.take_part(part(begun, [1], 1), NOW)
    assert isinstance(parts, Decided)
    assert parts.times.tolist() == first.times.tolist()


def test_what_stands_against_a_transaction_stands_against_a_large_one() -> None:
    oracle = make(large_commit_cells_max=5)
    begun, aborted = begin(oracle), begin(oracle)
    assert reason_of(oracle, oracle.take_part(part(begun, [1], 6), NOW)) is Reason.TOO_LARGE
    oracle.take_part(part(aborted, [1, 2], 3), NOW)
    oracle.abort([aborted.first_start_timestamp])
    assert reason_of(oracle, oracle.commit_large(whole(aborted, 3), NOW)) is Reason.ABORTED
    old = Begun(EPOCH - 5, 1, EPOCH - 6)
    assert reason_of(oracle, oracle.take_part(part(old, [1], 2), NOW)) is Reason.TOO_OLD
    never = Begun(10**6, 1, 10**5)
    assert isinstance(oracle.take_part(part(never, [1], 2), NOW), Impossible)
    assert isinstance(oracle.commit_large(whole(never, 2), NOW), Impossible)


def test_older_sets_make_room_and_raise_the_low_watermark_and_undecided_ones_do_not() -> None:
    oracle = make(large_commit_cells_max=6)
    reader = begin(oracle)
    assert commit_large(oracle, begin(oracle), [1, 2, 3, 4]) is Reason.COMMITTED
    assert oracle.conflicts.low_watermark == EPOCH
    waiting = begin(oracle)
    oracle.take_part(part(waiting, [5, 6, 7], 5), NOW)
    assert oracle.conflicts.low_watermark > reader.snapshot
    assert commit_small(oracle, reader, [99]) is Reason.TOO_OLD
    assert isinstance(oracle.take_part(part(begin(oracle), [8], 2), NOW), Later)


def test_a_conflict_that_is_forgotten_to_make_room_for_it_makes_it_too_old() -> None:
    oracle = make(large_commit_cells_max=6)
    late = begin(oracle)
    assert commit_large(oracle, begin(oracle), [1, 2, 3, 4]) is Reason.COMMITTED
    answer = oracle.take_part(part(late, [4, 5, 6], 3), NOW)
    assert isinstance(answer, Decided), "the set that has 4 is forgotten, and nobody looked at it"
    assert reason_of(oracle, answer) is Reason.TOO_OLD
    assert reason_of(oracle, oracle.commit_large(whole(late, 3), NOW)) is Reason.TOO_OLD
    assert not oracle.large, "what was opened for it is free"


SETS = st.lists(st.lists(st.integers(0, 15), min_size=1, max_size=6), min_size=1, max_size=20)


@settings(max_examples=examples(200), deadline=None, suppress_health_check=(HealthCheck.too_slow,))
@given(SETS, st.lists(st.booleans(), min_size=20, max_size=20), st.lists(st.integers(0, 3), min_size=20, max_size=20))
def test_large_and_small_commits_are_decided_alike(sets: list[list[int]], large: list[bool], ages: list[int]) -> None:
    """Against the book: every commit for ever, every set compared with every other."""
    oracle, commits, snapshots = make(large_commit_cells_max=30), list[tuple[int, set[int]]](), [EPOCH]
    for cells, is_large, age in zip(sets, large, ages, strict=False):
        begun = begin(oracle)
        snapshots.append(begun.snapshot)
        old = Begun(begun.first_start_timestamp, 1, snapshots[max(0, len(snapshots) - 1 - age)])
        expected = any(time > old.snapshot and written & set(cells) for time, written in commits)
        too_old = old.snapshot < oracle.conflicts.low_watermark
        reason = commit_large(oracle, old, cells) if is_large else commit_small(oracle, old, cells)
        assert reason in (
            Reason.TOO_OLD if too_old else Reason.CONFLICT if expected else Reason.COMMITTED,
            Reason.TOO_OLD,
        )
        if reason is Reason.COMMITTED:
            commits.append((oracle.range.last, set(cells)))


@pytest.mark.parametrize("cells", [1, 5])
def test_memory_is_given_back(cells: int) -> None:
    large = LargeWriteSets(10, 1000)
    coming = large.open(5, cells, 0, 4, 0.0)
    assert coming is not None
    assert large.cells == cells
    large.drop(5)
    assert large.cells == 0
    assert all(places.size == 1 for places in large.table.places)
