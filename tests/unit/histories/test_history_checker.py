"""The checker itself: each kind of violation in a history made up for it, beside its twin without."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from histories import History, Key, Kind, check
from tests.unit.histories.made_up import aborted, at, committed, guarding, history, reader, unknown

FIRST = committed(2, 1, 3, "w x 2")
SECOND = committed(5, 4, 6, "w x 5")


@dataclass(frozen=True)
class Case:
    """``bad`` has exactly the finding named; ``good`` differs from it where it must, and has none."""

    name: str
    kind: Kind
    bad: History
    good: History
    involved: tuple[int, ...]
    says: str
    bad_final: dict[Key, int | None] | None = None
    good_final: dict[Key, int | None] | None = None


CASES = [
    Case(
        "a value that nobody wrote",
        Kind.UNWRITTEN_READ,
        history(FIRST, reader(9, 8, "r x 77")),
        history(FIRST, reader(9, 8, "r x 2")),
        (9,),
        "transaction 9 with snapshot 8 read value 77 from key 'x', which no transaction wrote there",
    ),
    Case(
        "the value of another key",
        Kind.UNWRITTEN_READ,
        history(FIRST, reader(9, 8, "r y 2")),
        history(FIRST, reader(9, 8, "r y -")),
        (9,),
        "no transaction wrote there",
    ),
    Case(
        "an aborted write",
        Kind.ABORTED_READ,
        history(FIRST, aborted(5, 4, "w x 5"), reader(9, 8, "r x 5")),
        history(FIRST, aborted(5, 4, "w x 5"), reader(9, 8, "r x 2")),
        (9, 5),
        "which transaction 5 wrote, and that was aborted (Conflict)",
    ),
    Case(
        "an aborted write, read by an aborted transaction",
        Kind.ABORTED_READ,
        history(aborted(5, 4, "w x 5"), aborted(9, 8, "r x 5")),
        history(aborted(5, 4, "w x 5"), aborted(9, 8, "r x -")),
        (9, 5),
        "aborted",
    ),
    Case(
        "an intermediate write",
        Kind.INTERMEDIATE_READ,
        history(committed(2, 1, 3, "w x 2, w x 22"), reader(9, 8, "r x 2")),
        history(committed(2, 1, 3, "w x 2, w x 22"), reader(9, 8, "r x 22")),
        (9, 2),
        "itself overwrote",
    ),
    Case(
        "an intermediate write of a transaction of unknown outcome",
        Kind.INTERMEDIATE_READ,
        history(unknown(2, 1, "w x 2, w x 22"), reader(9, 8, "r x 2")),
        history(unknown(2, 1, "w x 2, w x 22"), reader(9, 8, "r x 22")),
        (9, 2),
        "itself overwrote",
    ),
    Case(
        "a commit after the snapshot",
        Kind.FUTURE_READ,
        history(FIRST, SECOND, reader(7, 5, "r x 5")),
        history(FIRST, SECOND, reader(7, 6, "r x 5")),
        (7, 5),
        "committed only at 6",
    ),
    Case(
        "its own later write",
        Kind.FUTURE_READ,
        history(committed(5, 4, 6, "r x 5, w x 5")),
        history(committed(5, 4, 6, "w x 5, r x 5")),
        (5,),
        "itself only later",
    ),
    Case(
        "an older version",
        Kind.STALE_READ,
        history(FIRST, SECOND, reader(9, 8, "r x 2")),
        history(FIRST, SECOND, reader(9, 5, "r x 2")),
        (9, 2, 5),
        "transaction 5 had replaced it with value 5 at 6",
    ),
    Case(
        "a deleted version",
        Kind.STALE_READ,
        history(FIRST, committed(5, 4, 6, "w x -"), reader(9, 8, "r x 2")),
        history(FIRST, committed(5, 4, 6, "w x -"), reader(9, 8, "r x -")),
        (9, 2, 5),
        "replaced it with nothing",
    ),
    Case(
        "an acknowledged commit that is not there",
        Kind.MISSING_VERSION,
        history(FIRST, reader(9, 8, "r x -")),
        history(FIRST, reader(9, 2, "r x -")),
        (9, 2),
        "though transaction 2 had committed value 2 there at 3",
    ),
    Case(
        "half of a transaction",
        Kind.STALE_READ,
        history(FIRST, committed(5, 4, 6, "w x 5, w y 5"), reader(9, 8, "r x 2, r y 5")),
        history(FIRST, committed(5, 4, 6, "w x 5, w y 5"), reader(9, 8, "r x 5, r y 5")),
        (9, 2, 5),
        "replaced",
    ),
    Case(
        "two reads of a key that differ",
        Kind.UNREPEATABLE_READ,
        history(FIRST, SECOND, reader(9, 4, "r x 2, r x 5")),
        history(FIRST, SECOND, reader(9, 4, "r x 2, r x 2")),
        (9,),
        "read value 2 from key 'x' and later value 5",
    ),
    Case(
        "an own write that is not read back",
        Kind.OWN_WRITE_NOT_READ,
        history(FIRST, committed(5, 4, 6, "w x 5, r x 2")),
        history(FIRST, committed(5, 4, 6, "r x 2, w x 5, r x 5")),
        (5,),
        "wrote value 5 to key 'x' and then read value 2",
    ),
    Case(
        "an own deletion that is not read back",
        Kind.OWN_WRITE_NOT_READ,
        history(FIRST, committed(5, 4, 6, "w x -, r x 2")),
        history(FIRST, committed(5, 4, 6, "w x -, r x -")),
        (5,),
        "wrote nothing",
    ),
    Case(
        "a lost update",
        Kind.LOST_UPDATE,
        history(FIRST, committed(4, 2, 6, "w x 4")),
        history(FIRST, committed(4, 3, 6, "w x 4")),
        (4, 2),
        "transaction 4 read key 'x' at snapshot 2 and wrote it at 6, over what transaction 2 had committed at 3",
    ),
    Case(
        "an update lost by the third writer of a key",
        Kind.LOST_UPDATE,
        history(FIRST, SECOND, committed(7, 5, 8, "w x 7")),
        history(FIRST, SECOND, committed(7, 6, 8, "w x 7")),
        (7, 5),
        "committed at 6",
    ),
    Case(
        "a guarded key that was changed",
        Kind.BROKEN_GUARD,
        history(FIRST, guarding(committed(4, 2, 7, "r y -, w z 4"), "x", "y"), committed(5, 4, 9, "w y 5")),
        history(FIRST, guarding(committed(4, 3, 7, "r y -, w z 4"), "x", "y"), committed(5, 4, 9, "w y 5")),
        (4, 2),
        "transaction 4 guarded key 'x' from snapshot 2 on and committed at 7; transaction 2 had changed it at 3",
    ),
    Case(
        "a guarded key that was deleted",
        Kind.BROKEN_GUARD,
        history(FIRST, committed(4, 3, 6, "w x -"), guarding(committed(5, 3, 7, "r x 2, w z 5"), "x")),
        history(FIRST, committed(4, 3, 6, "w x -"), guarding(committed(5, 3, 7, "r x 2, w z 5"), "y")),
        (5, 4),
        "guarded key 'x'",
    ),
    Case(
        "a timestamp used for a commit and for a start",
        Kind.DUPLICATE_TIMESTAMP,
        history(FIRST, committed(4, 1, 5, "w y 4"), committed(6, 1, 7, "w z 6"), aborted(7, 1)),
        history(FIRST, committed(4, 1, 5, "w y 4"), committed(6, 1, 7, "w z 6"), aborted(8, 1)),
        (6, 7),
        "the timestamp 7 is the commit timestamp of transaction 6 and the id of transaction 7",
    ),
    Case(
        "a snapshot that is not below the start",
        Kind.TIMESTAMP_ORDER,
        history(reader(5, 5)),
        history(reader(5, 4)),
        (5,),
        "its snapshot 5 is not below its start timestamp",
    ),
    Case(
        "a commit that is not above the start",
        Kind.TIMESTAMP_ORDER,
        history(committed(5, 2, 4, "w x 5")),
        history(committed(5, 2, 6, "w x 5")),
        (5,),
        "not above 5, where it began",
    ),
    Case(
        "a transaction that wrote nothing and has a commit timestamp",
        Kind.TIMESTAMP_ORDER,
        history(committed(5, 2, 6, "r x -")),
        history(committed(5, 2, 2, "r x -")),
        (5,),
        "it wrote nothing",
    ),
    Case(
        "a value written twice",
        Kind.AMBIGUOUS_VALUE,
        history(FIRST, committed(5, 4, 6, "w x 2")),
        history(FIRST, committed(5, 4, 6, "w y 2")),
        (2, 5),
        "value 2 of key 'x' was written by transactions 2, 5",
    ),
    Case(
        "an acknowledged commit below nobody's snapshot",
        Kind.MISSED_COMMIT,
        history(at(FIRST, 10, 20, 30, 40), at(reader(5, 2), 41, 50, 60, 70)),
        history(at(FIRST, 10, 20, 30, 40), at(reader(5, 2), 40, 50, 60, 70)),
        (5, 2),
        "transaction 5 began 0.000 ms after the commit of transaction 2 at 3 was acknowledged",
    ),
    Case(
        "a snapshot older than one before",
        Kind.SNAPSHOT_WENT_BACK,
        history(at(reader(6, 5), 10, 20), at(aborted(7, 4), 21, 30)),
        history(at(reader(6, 5), 10, 20), at(aborted(7, 4), 20, 30)),
        (7, 6),
        "with snapshot 4 where that one had 5",
    ),
    Case(
        "a commit below a snapshot that was out",
        Kind.COMMIT_BELOW_SNAPSHOT,
        history(at(reader(6, 3, "r y -"), 20, 28), at(FIRST, 10, 15, 29, 40)),
        history(at(reader(6, 3, "r y -"), 20, 28), at(FIRST, 10, 15, 28, 40)),
        (2, 6),
        "transaction 2 committed at 3, though snapshot 3 of transaction 6 had been handed out",
    ),
    Case(
        "a final state without an acknowledged commit",
        Kind.FINAL_STATE,
        history(FIRST, SECOND),
        history(FIRST, SECOND),
        (2, 5),
        "at the end, key 'x' held value 2",
        bad_final={"x": 2},
        good_final={"x": 5},
    ),
    Case(
        "a final state that lacks a key",
        Kind.FINAL_STATE,
        history(FIRST),
        history(FIRST),
        (2,),
        "at the end, key 'x' held nothing, though transaction 2 had committed value 2 there at 3",
        bad_final={},
        good_final={"x": 2, "y": None},
    ),
    Case(
        "a final state with an aborted write",
        Kind.FINAL_STATE,
        history(FIRST, aborted(5, 4, "w x 5")),
        history(FIRST, aborted(5, 4, "w x 5")),
        (5,),
        "aborted",
        bad_final={"x": 5},
        good_final={"x": 2},
    ),
    Case(
        "a final state with what nobody wrote",
        Kind.FINAL_STATE,
        history(FIRST),
        history(FIRST),
        (),
        "key 'z' held value 9, which no transaction wrote there",
        bad_final={"x": 2, "z": 9},
        good_final={"x": 2, "z": None},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_violation_is_found_and_its_good_twin_passes(case: Case) -> None:
    (found,) = check(case.bad, case.bad_final)
    assert (found.kind, found.transactions) == (case.kind, case.involved)
    assert case.says in found.text
    assert check(case.good, case.good_final) == []


def test_every_kind_of_finding_is_tried_here_or_with_unknown_outcomes_or_workloads() -> None:
    elsewhere = {Kind.NO_PLACE_FOR_COMMIT, Kind.INVARIANT}
    assert {case.kind for case in CASES} == set(Kind) - elsewhere


def test_write_skew_is_no_violation() -> None:
    skew = history(
        committed(5, 4, 7, "r x -, r y -, w x 5"),
        committed(6, 4, 8, "r x -, r y -, w y 6"),
        reader(10, 9, "r x 5, r y 6"),
    )
    assert check(skew, {"x": 5, "y": 6}) == []


def test_a_guard_of_what_is_written_as_well_or_of_one_that_did_not_commit_or_wrote_nothing_is_not_broken() -> None:
    guards = history(
        FIRST,
        guarding(committed(4, 3, 6, "r x 2, w x 4"), "x"),
        guarding(aborted(5, 3, "r x 2, w y 5"), "x"),
        guarding(unknown(7, 3, "r x 2, w y 7"), "x"),
        guarding(reader(8, 3, "r x 2"), "x"),
    )
    assert check(guards) == []


def test_a_long_fork_is_a_violation_whatever_the_snapshots_are() -> None:
    writers = committed(5, 4, 7, "w x 5"), committed(6, 4, 8, "w y 6")
    for snapshot in range(1, 12):
        fork = reader(20, snapshot, "r x 5, r y -"), reader(21, snapshot, "r x -, r y 6")
        assert check(history(*writers, *fork))
    assert check(history(*writers, reader(20, 7, "r x 5, r y -"), reader(21, 8, "r x 5, r y 6"))) == []


def test_a_duplicated_start_timestamp_is_a_finding_and_no_error() -> None:
    twice = history(committed(5, 4, 7, "w x 5"), committed(5, 4, 8, "w y 5"))
    (found,) = check(twice)
    assert (found.kind, found.transactions) == (Kind.DUPLICATE_TIMESTAMP, (5, 5))


def test_ids_that_are_only_names_are_not_compared_with_timestamps() -> None:
    named = History((committed(7, 4, 7, "w x 5"), reader(1, 9, "r x 5")), ids_are_timestamps=False)
    assert check(named) == []
    (found,) = check(History((*named.transactions, reader(1, 9)), ids_are_timestamps=False))
    assert found.text == "the id 1 is the id of transaction 1 and the id of transaction 1"


def test_settled_commits_have_no_answer_and_are_not_asked_of_later_begins() -> None:
    settled = at(FIRST, 10, 20, 30)
    assert check(history(settled, at(reader(5, 2), 50, 60))) == []


def test_a_finding_reads_as_a_sentence() -> None:
    (found,) = check(history(FIRST, reader(9, 8, "r x -")))
    assert str(found) == (
        "missing version: transaction 9 with snapshot 8 read nothing from key 'x', though transaction 2 had committed "
        "value 2 there at 3"
    )
