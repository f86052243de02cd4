"""Any history of requests, decided by the oracle and by a naive model of snapshot isolation."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.tso.decisions import by_hand
from tests.unit.tso.decisions.by_hand import EPOCH, begin, make
from tso.decisions.oracle import Decided, Oracle, Recalled
from wire import Reason

PATIENT = settings(max_examples=examples(300), deadline=None, suppress_health_check=(HealthCheck.too_slow,))
"""No test here is about time: a busy machine must not fail one."""

IN_FLIGHT_MAX = 8
"""Decisions that are not told yet: the pipeline takes no more, so that none of them is forgotten."""


def decide(oracle: Oracle, start: int, snapshot: int, cells: list[int]) -> tuple[Decided, Reason]:
    decided = by_hand.decide(oracle, (start, snapshot, cells))
    return decided, by_hand.reasons(decided)[0]


@dataclass
class Model:
    """Snapshot isolation by the book: every commit for ever, every set compared with every other."""

    snapshots: dict[int, int] = field(default_factory=dict)
    commits: dict[int, tuple[int, frozenset[int]]] = field(default_factory=dict)
    answers: dict[int, Reason] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)

    def conflicts(self, start: int, cells: list[int]) -> bool:
        snapshot = self.snapshots[start]
        return any(time > snapshot and written & set(cells) for time, written in self.commits.values())


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["begin", "commit", "commit", "again", "abort", "persist"]),
        st.integers(0, 30),
        st.lists(st.integers(0, 5), max_size=3),
    ),
    max_size=80,
)


class Run:
    """Drives an oracle and the model with the same requests, and compares every answer.

    One that ``forgets`` may say TOO_OLD instead, and must then change nothing.
    """

    def __init__(self, oracle: Oracle, *, forgets: bool = False) -> None:
        self.oracle = oracle
        self.forgets = forgets
        self.model = Model()
        self.waiting: list[Decided] = []
        self.in_flight: set[int] = set()
        self.told: list[int] = []

    def started(self, choice: int) -> int | None:
        starts = sorted(self.model.snapshots)
        return starts[choice % len(starts)] if starts else None

    def begin(self) -> None:
        begun = begin(self.oracle)
        durable = [time for time, _ in self.model.commits.values() if time in self.told]
        undurable = [time for time, _ in self.model.commits.values() if time not in self.told]
        assert begun.snapshot >= max(durable, default=EPOCH), "an acknowledged commit is not in the snapshot"
        assert begun.snapshot < min(undurable, default=begun.snapshot + 1), "the snapshot has a commit that may be lost"
        self.model.snapshots[begun.first_start_timestamp] = begun.snapshot

    def commit(self, choice: int, cells: list[int]) -> None:
        start = self.started(choice)
        if start is None or start in self.model.answers or len(self.in_flight) >= IN_FLIGHT_MAX:
            return
        conflict, model = self.model.conflicts(start, cells), self.model
        decided, reason = decide(self.oracle, start, model.snapshots[start], cells)
        self.in_flight.add(decided.number)
        if reason is Reason.TOO_OLD:
            assert self.forgets
            assert decided.start_timestamps.size == 0
            return
        expected = Reason.ABORTED if start in model.aborted else Reason.CONFLICT if conflict else Reason.COMMITTED
        assert reason is expected
        model.answers[start] = reason
        if reason is Reason.COMMITTED:
            model.commits[start] = (decided.commit_timestamps[0], frozenset(cells))
            self.waiting.append(decided)

    def again(self, choice: int, cells: list[int]) -> None:
        start = self.started(choice)
        if start is None or start not in self.model.answers or len(self.in_flight) >= IN_FLIGHT_MAX:
            return
        decided, reason = decide(self.oracle, start, self.model.snapshots[start], cells)
        self.in_flight.add(decided.number)
        assert decided.start_timestamps.size == 0, "a decided transaction was decided once more"
        assert reason is self.model.answers[start] or (self.forgets and reason is Reason.TOO_OLD)

    def abort(self, choice: int, cells: list[int]) -> None:
        start = self.started(choice)
        if start is None:
            return
        recalled = self.oracle.abort([start])
        assert isinstance(recalled, Recalled)
        for known, time in recalled.committed.items():
            assert self.model.commits[known][0] == time
        if start in self.model.commits and self.model.commits[start][0] not in self.told:
            assert start in recalled.committed, "a commit on its way would be fenced"
        if start not in self.model.answers:
            assert recalled.unknown == (start,)
            self.model.aborted.add(start)

    def persist(self, choice: int) -> None:
        if self.waiting:
            decided = self.waiting.pop(choice % len(self.waiting))
            self.oracle.persisted(decided.number)
        released = set(self.oracle.release())
        self.in_flight -= released
        if released:
            still_waiting = [decided.commit_timestamps[0] for decided in self.waiting]
            times = [time for time, _ in self.model.commits.values()]
            self.told = [time for time in times if time < min(still_waiting, default=10**9)]

    def step(self, action: str, choice: int, cells: list[int]) -> None:
        match action:
            case "begin":
                self.begin()
            case "persist":
                self.persist(choice)
            case _:
                getattr(self, action)(choice, cells)


@PATIENT
@given(ACTIONS)
def test_any_history_is_decided_as_the_book_says(actions: list[tuple[str, int, list[int]]]) -> None:
    run = Run(make())
    for action, choice, cells in actions:
        run.step(action, choice, cells)
    times = sorted(time for time, _ in run.model.commits.values())
    assert all(earlier < later for earlier, later in pairwise(times))
    assert not set(times) & set(run.model.snapshots)


@PATIENT
@given(ACTIONS)
def test_with_little_memory_it_refuses_more_and_never_decides_wrongly(
    actions: list[tuple[str, int, list[int]]],
) -> None:
    small = {
        "conflict_map_entries_max": 6,
        "commit_share_max": 1,
        "remembered_decisions_max": IN_FLIGHT_MAX,
        "transactions_in_flight_max": IN_FLIGHT_MAX,
        "remembered_aborts_max": 2,
    }
    run = Run(make(**small), forgets=True)
    for action, choice, cells in actions:
        run.step(action, choice, cells)
