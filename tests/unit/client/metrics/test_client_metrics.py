"""What a program's transactions did is counted once, by what came of it, and read as Prometheus has it."""

from __future__ import annotations

import dataclasses
import gc
from contextlib import suppress

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from client import (
    ClientMetrics,
    CommitStep,
    Conflict,
    InvalidRequest,
    NoPrimary,
    OutcomeUnknown,
    PythiaError,
    SnapshotTooOld,
    StoreUnavailable,
    TableFenced,
    Transaction,
    TransactionAborted,
    TransactionExpired,
    TransactionHooks,
    TransactionManager,
    TransactionTooLarge,
)
from client.metrics.families import FAMILIES
from client.metrics.meter import _RESULTS, RESULTS, STEPS
from store.faults import Fault
from tests.forked import entered_in_a_thread, in_child
from tests.unit.client.conftest import SETTINGS, A, Installation
from tests.unit.client.transacting import fail_over, get, open_with, put

COMMITS = "pythia_client_commits_total"
STEP = "pythia_client_commit_step_seconds_count"


def counted(metrics: ClientMetrics, name: str, **labels: str) -> float:
    """One sample of the tests' installation."""
    wanted = {"root": SETTINGS.root, **labels}
    samples = [sample for metric in metrics.collect() for sample in metric.samples]
    [value] = [sample.value for sample in samples if (sample.name, sample.labels) == (name, wanted)]
    return value


def results(manager: TransactionManager) -> dict[str, float]:
    """What calls of commit came to, as far as any did."""
    found = {result: counted(manager.metrics, COMMITS, result=result) for result in RESULTS}
    return {result: count for result, count in found.items() if count}


def steps(manager: TransactionManager) -> list[float]:
    """How many commits came so far."""
    return [counted(manager.metrics, STEP, step=step) for step in STEPS]


def committed_with_a_rival(manager: TransactionManager) -> Transaction:
    transaction = open_with(manager, b"r", b"late")
    put(manager, b"r", b"first")
    return transaction


def test_each_call_of_commit_counts_by_what_came_of_it(manager: TransactionManager) -> None:
    put(manager, b"r", b"1")
    with manager.transaction() as reading:
        reading.get("t", b"r")
    lost = committed_with_a_rival(manager)
    with pytest.raises(Conflict):
        lost.commit()
    fenced = open_with(manager, b"r", b"2")
    manager.fence("t")
    with pytest.raises(TableFenced):
        fenced.commit()
    forbidden = open_with(manager, b"r", b"3")
    forbidden.forbid_commit("not today")
    with pytest.raises(TransactionAborted):
        forbidden.commit()
    assert results(manager) == {"committed": 2, "nothing_written": 1, "conflict": 1, "fenced": 1, "aborted": 1}
    assert counted(manager.metrics, "pythia_client_begin_seconds_count") == 6
    assert counted(manager.metrics, "pythia_client_commit_seconds_count") == 5  # of those that wrote
    assert counted(manager.metrics, "pythia_client_rollbacks_total") == 1


def test_a_call_that_is_refused_before_anything_is_done_does_not_count(manager: TransactionManager) -> None:
    transaction = open_with(manager, b"r", b"1")
    transaction.commit()
    with pytest.raises(InvalidRequest):
        transaction.commit()
    assert results(manager) == {"committed": 1}


def test_what_could_not_be_had_is_told_from_what_was_decided(
    installation: Installation, manager: TransactionManager
) -> None:
    transaction = open_with(manager, b"r", b"1")
    installation.store.plan("put", Fault.LOST)
    with pytest.raises(TransactionAborted, match="never taken up"):
        transaction.commit()
    shared = open_with(manager, b"r", b"1")
    shared.handle()
    installation.store.plan("get_many", Fault.LOST)
    with pytest.raises(StoreUnavailable):
        shared.commit()
    assert results(manager) == {"unavailable": 2}
    assert steps(manager) == [0, 0, 0]


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (OutcomeUnknown(1, 0), "unknown"),
        (SnapshotTooOld(1, "it is"), "too_old"),
        (TransactionExpired(1, "it did"), "expired"),
        (TransactionTooLarge(1, "it is"), "too_large"),
        (TransactionAborted(1, "by somebody"), "aborted"),
        (NoPrimary(1, "none"), "unavailable"),
        (InvalidRequest("closed"), "failed"),
        (KeyboardInterrupt(), "failed"),
    ],
)
def test_however_a_commit_ends_it_is_counted(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch, error: BaseException, result: str
) -> None:
    transaction = open_with(manager, b"r", b"1")

    def ends(*_given: object, **_named: object) -> object:
        raise error

    monkeypatch.setattr("client.transactions.commit.commit", ends)
    with pytest.raises(type(error)):
        transaction.commit()
    assert results(manager) == {result: 1}


def test_every_error_that_a_commit_ends_in_has_a_result_of_its_own() -> None:
    def below(kind: type[PythiaError]) -> set[type[PythiaError]]:
        return {kind}.union(*map(below, kind.__subclasses__()))

    assert below(TransactionAborted) | {OutcomeUnknown} == set(_RESULTS)
    assert len(set(RESULTS)) == len(RESULTS)


def test_steps_are_those_that_hooks_are_told_of_but_what_is_sent() -> None:
    assert set(STEPS) == {step.value for step in CommitStep} - {"sent"}


def test_a_commit_is_timed_step_by_step_and_so_is_a_fence(installation: Installation) -> None:
    manager = installation.manager()
    put(manager, b"r", b"1")
    assert steps(manager) == [1, 1, 1]
    with pytest.raises(Conflict):
        committed_with_a_rival(manager).commit()
    assert steps(manager) == [3, 2, 2]
    manager.fence("t")
    assert steps(manager) == [4, 3, 3]


def test_the_time_of_a_hook_is_not_that_of_a_step(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr("client.transactions.commit.time.monotonic", lambda: now_s[0])

    class Slow(TransactionHooks):
        def commit_step(self, step: CommitStep, start_timestamp: int) -> None:
            if step is not CommitStep.SENT:
                now_s[0] += 1_000.0

    manager = installation.manager(hooks=Slow())
    put(manager, b"r", b"1")
    sums = [counted(manager.metrics, "pythia_client_commit_step_seconds_sum", step=step) for step in STEPS]
    assert sums == [0.0, 0.0, 0.0]


def test_a_begin_that_fails_is_counted_as_one(empty_installation: Installation) -> None:
    manager = empty_installation.manager(settings=dataclasses.replace(SETTINGS, deadline_ms=50))
    with pytest.raises(NoPrimary):
        manager.transaction()
    assert counted(manager.metrics, "pythia_client_begin_failures_total") == 1
    assert counted(manager.metrics, "pythia_client_begin_seconds_count") == 0


def test_what_is_run_again_is_counted_each_time(manager: TransactionManager) -> None:
    attempts = []

    def increase(transaction: Transaction) -> None:
        transaction.put("t", b"r", {A: b"1"})
        attempts.append(1)
        if len(attempts) < 3:
            put(manager, b"r", b"rival")

    manager.run(increase)
    assert counted(manager.metrics, "pythia_client_reruns_total") == 2
    assert results(manager) == {"committed": 3, "conflict": 2}


def test_rollbacks_count_those_of_a_block_that_failed_too(manager: TransactionManager) -> None:
    manager.transaction().rollback()
    with suppress(ZeroDivisionError), manager.transaction():
        raise ZeroDivisionError
    assert counted(manager.metrics, "pythia_client_rollbacks_total") == 2
    assert results(manager) == {}


def test_revalidations_and_connections_tell_of_a_failover(installation: Installation) -> None:
    manager = installation.manager()
    transaction = open_with(manager, b"r", b"1")
    assert counted(manager.metrics, "pythia_client_oracle_connections_total") == 1
    fail_over(installation)
    transaction.commit()
    assert counted(manager.metrics, "pythia_client_revalidations_total") == 1
    assert counted(manager.metrics, "pythia_client_oracle_connections_total") == 2


def test_readers_count_the_transactions_that_they_had_to_ask_about(installation: Installation) -> None:
    class LoseShadowCells(TransactionHooks):
        def commit_step(self, step: CommitStep, start_timestamp: int) -> None:
            if step is CommitStep.ANSWERED:
                installation.store.plan("put", Fault.LOST)

    put(installation.manager(hooks=LoseShadowCells()), b"r", b"1")
    reader = installation.manager()
    asked = "pythia_client_outcome_lookups_total"
    assert get(reader, b"r") == b"1"
    assert counted(reader.metrics, asked) == 1
    assert get(reader, b"r") == b"1"
    assert counted(reader.metrics, asked) == 1, "the shadow cell has been healed"


def test_what_is_in_use_is_told_with_the_age_of_the_oldest(
    manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [1_000.0]
    monkeypatch.setattr("client.transactions.heartbeat.time.monotonic", lambda: now_s[0])
    in_use, oldest = "pythia_client_in_use", "pythia_client_oldest_in_use_seconds"
    assert (counted(manager.metrics, in_use), counted(manager.metrics, oldest)) == (0, 0)
    transaction = manager.transaction()
    now_s[0] += 5.0
    snapshot = manager.snapshot()
    past = manager.snapshot(snapshot.timestamp)
    assert (counted(manager.metrics, in_use), counted(manager.metrics, oldest)) == (2, 5), "nobody knows of a past one"
    transaction.rollback()
    assert (counted(manager.metrics, in_use), counted(manager.metrics, oldest)) == (1, 0)
    del snapshot, past
    gc.collect()
    assert counted(manager.metrics, in_use) == 0


def test_a_manager_that_was_closed_has_nothing_in_use(installation: Installation) -> None:
    manager = installation.manager()
    snapshot = manager.snapshot()
    assert counted(manager.metrics, "pythia_client_in_use") == 1
    manager.close()
    assert counted(manager.metrics, "pythia_client_in_use") == 0
    assert snapshot.is_open()


def test_managers_of_an_installation_count_together(installation: Installation) -> None:
    metrics = ClientMetrics()
    one, other = installation.manager(metrics=metrics), installation.manager(metrics=metrics)
    put(one, b"r", b"1")
    put(other, b"r", b"2")
    held = one.transaction(), other.transaction()
    assert results(one) == {"committed": 2}
    assert counted(metrics, "pythia_client_in_use") == len(held)


def test_a_manager_that_was_given_none_counts_for_itself(installation: Installation) -> None:
    one, other = installation.manager(), installation.manager()
    put(one, b"r", b"1")
    assert results(other) == {}


def test_installations_are_told_apart() -> None:
    metrics = ClientMetrics()
    metrics.meter("/a").rolled_back()
    metrics.meter("/b").rolled_back()
    metrics.meter("/b").rolled_back()
    text = generate_latest(metrics).decode()
    assert 'pythia_client_rollbacks_total{root="/a"} 1.0\n' in text
    assert 'pythia_client_rollbacks_total{root="/b"} 2.0\n' in text


def test_all_that_there_is_to_count_is_there_from_the_beginning(manager: TransactionManager) -> None:
    collected = list(manager.metrics.collect())
    assert [(metric.name, metric.documentation, metric.type) for metric in collected] == [
        (family.name.removesuffix("_total"), family.text, family.kind)
        for family in sorted(FAMILIES, key=lambda family: family.kind == "gauge")
    ]
    for metric, family in zip(collected, sorted(FAMILIES, key=lambda family: family.kind == "gauge"), strict=True):
        assert metric.samples
        assert {label for sample in metric.samples for label in sample.labels} - {"le"} == {"root", *family.labels}
        assert not any(sample.name.endswith("_created") for sample in metric.samples)


def test_a_registry_takes_it_once_and_shows_what_came_later(installation: Installation) -> None:
    metrics, registry = ClientMetrics(), CollectorRegistry(auto_describe=True)
    registry.register(metrics)
    with pytest.raises(ValueError, match="Duplicated"):
        registry.register(ClientMetrics())
    put(installation.manager(metrics=metrics), b"r", b"1")
    assert registry.get_sample_value(COMMITS, {"root": SETTINGS.root, "result": "committed"}) == 1


def test_a_child_counts_from_zero_whatever_was_under_way_at_the_fork(installation: Installation) -> None:
    manager = installation.manager()
    put(manager, b"r", b"1")
    metrics = manager.metrics

    def child() -> tuple[dict[str, float], float, float]:
        open_with(manager, b"c", b"1").commit()
        metrics.meter("/another").rolled_back()
        return results(manager), counted(metrics, "pythia_client_in_use"), counted(metrics, STEP, step="written")

    counting = metrics.instruments.counter("pythia_client_rollbacks_total", root=SETTINGS.root)
    snapshot = manager.snapshot()
    with (
        entered_in_a_thread(metrics._lock),
        entered_in_a_thread(manager.meter._lock),
        entered_in_a_thread(counting._value._lock),
    ):
        assert in_child(child) == ({"committed": 1}, 0, 1)
    assert results(manager) == {"committed": 1}
    assert snapshot.is_open()
