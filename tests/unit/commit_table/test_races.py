"""Everybody at once: resolvers, oracles of two epochs and lost answers, in every order that hypothesis finds.

What must hold: a resolver's answer stays true for ever. "Committed" is never taken back, and "not below my epoch" is
never proved wrong by whatever lands later.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commit_table import FENCE_AT_INFINITY, Aborted, CommitTable, Committed, Outcome, Undecided
from commit_table.layout import row_key
from store import CompareAndSet, Rejected, StoreUnavailable
from store.faults import Fault, FaultyCellStore
from tests.recording import record

START, OLD, NEW = 100, 50, 1_000
OLD_COMMIT, NEW_COMMIT = 150, 1_100
TABLE = "commits"


class Interrupted(FaultyCellStore):
    """Runs ``between`` once, between a resolver's read and its compare-and-set."""

    between: Callable[[], None] | None = None

    def compare_and_set(
        self, table: str, row: bytes, *, check: bytes, expected: bytes | None, put: bytes, value: bytes
    ) -> CompareAndSet:
        between, self.between = self.between, None
        if between is not None:
            between()
        return super().compare_and_set(table, row, check=check, expected=expected, put=put, value=value)


@pytest.fixture
def store() -> Interrupted:
    return Interrupted()


@pytest.fixture
def table(store: Interrupted) -> CommitTable:
    table = CommitTable(store, TABLE)
    table.create()
    return table


def test_a_commit_between_the_read_and_the_fence_is_found(store: Interrupted, table: CommitTable) -> None:
    store.between = lambda: record(store, TABLE, {START: OLD_COMMIT}, OLD)
    assert table.resolve(START, NEW) == Committed(OLD_COMMIT)


def test_a_void_commit_does_not_stop_a_larger_fence(store: Interrupted, table: CommitTable) -> None:
    table.resolve(START, NEW)
    record(store, TABLE, {START: OLD_COMMIT}, OLD)
    store.between = lambda: record(store, TABLE, {START: NEW_COMMIT}, NEW)
    assert table.resolve(START, NEW + 500) == Committed(NEW_COMMIT)


def test_many_are_fenced_as_one_is(store: Interrupted, table: CommitTable) -> None:
    record(store, TABLE, {START + 1: OLD_COMMIT}, OLD)
    found = table.resolve_all([START, START + 1], NEW)
    assert found == {START: Undecided(), START + 1: Committed(OLD_COMMIT)}
    record(store, TABLE, {START: OLD_COMMIT + 1}, OLD)
    assert table.outcome(START) == Undecided()


def test_a_commit_that_is_forgotten_while_somebody_aborts_it_is_not_fenced(
    store: Interrupted, table: CommitTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(store, TABLE, {START: OLD_COMMIT}, OLD)
    look = table.forgotten_below

    def forget_afterwards() -> int:
        below = look()
        table.forget_below(START + 1)
        store.delete(TABLE, [row_key(START)], OLD)
        return below

    monkeypatch.setattr(table, "forgotten_below", forget_afterwards)
    assert table.abort(START) == Committed(OLD_COMMIT)


@pytest.mark.parametrize("fault", list(Fault))
def test_a_fence_whose_answer_is_lost_is_made_sure_of(store: Interrupted, table: CommitTable, fault: Fault) -> None:
    store.plan("compare_and_set", fault)
    assert table.resolve(START, NEW) == Undecided()
    record(store, TABLE, {START: OLD_COMMIT}, OLD)
    store.deliver_late()
    assert table.outcome(START) == Undecided()


def test_a_store_that_answers_reads_only_is_asked_three_times(store: Interrupted, table: CommitTable) -> None:
    store.plan("compare_and_set", *[Fault.LOST] * 3)
    with pytest.raises(StoreUnavailable, match=r"can be read, and 3 times did not take a write: .+"):
        table.resolve(START, NEW)
    assert table.resolve(START, NEW) == Undecided(), "each answer that does not come takes as long as a request may"


def test_a_store_that_never_answers_is_said_so(store: Interrupted, table: CommitTable) -> None:
    store.plan("compare_and_set", *[Fault.LOST] * 200)
    with pytest.raises(StoreUnavailable, match="could not be fenced"):
        table.resolve(START, NEW)


def test_a_store_that_always_rejects_is_said_so(store: Interrupted, table: CommitTable) -> None:
    store.compare_and_set = lambda *_, **__: Rejected()  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable, match="could not be fenced"):
        table.abort(START)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("old oracle"), st.just(0)),
        st.tuples(st.just("new oracle"), st.just(0)),
        st.tuples(st.just("resolve"), st.sampled_from([NEW, NEW + 500])),
        st.tuples(st.just("abort"), st.just(FENCE_AT_INFINITY)),
        st.tuples(st.just("deliver"), st.just(0)),
    ),
    max_size=8,
)
faults = st.lists(st.none() | st.sampled_from(list(Fault)), max_size=6)


@given(steps, steps, faults)
def test_what_a_resolver_learnt_stays_true(
    before: list[tuple[str, int]], between: list[tuple[str, int]], planned: list[Fault | None]
) -> None:
    """The new oracle commits only what it was told is not committed below it, as a client that revalidates ensures."""
    store = Interrupted()
    table = CommitTable(store, TABLE)
    table.create()
    learnt: list[tuple[int, Outcome]] = []

    def insist(call: Callable[[], Outcome]) -> Outcome:
        """As callers may: again where nothing is known."""
        while True:
            with suppress(StoreUnavailable):
                return call()

    def take(step: str, fence: int) -> None:
        if step == "old oracle":
            record(store, TABLE, {START: OLD_COMMIT}, OLD)
        elif step == "new oracle" and insist(lambda: table.resolve(START, NEW)) == Undecided():
            record(store, TABLE, {START: NEW_COMMIT}, NEW)
        elif step in ("resolve", "abort"):
            learnt.append((fence, insist(lambda: table.resolve(START, fence))))
        elif step == "deliver":
            store.deliver_late()
        holds()

    def holds() -> None:
        now = table.outcome(START)
        for fence, outcome in learnt:
            if isinstance(outcome, Committed):
                assert now == outcome
            elif isinstance(now, Committed):
                assert now.commit_timestamp >= fence

    def take_all() -> None:
        for step in between:
            take(*step)

    store.between = take_all
    store.plan("compare_and_set", *planned)
    for step in before:
        take(*step)
    store.deliver_late()
    holds()
    final = insist(lambda: table.abort(START))
    assert isinstance(final, Committed | Aborted)
    record(store, TABLE, {START: OLD_COMMIT}, OLD)
    assert table.outcome(START) == final
