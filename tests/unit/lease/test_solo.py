"""An oracle that is alone: epochs and ceilings in the cell store, and what a second process does to the first."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from lease import EpochRecord, LeaseSettings, RecordInvalid, StandBy, Superseded
from lease.solo import RECORD, ROW, SoloCandidate, SoloRecord, SoloRegistry, SoloTenure
from store import RowPut
from store.faults import Fault, FaultyCellStore

SETTINGS = LeaseSettings(lease_ms=1000)
TABLE = "pythia_epoch"
Start = Callable[[], SoloTenure | StandBy]
Make = Callable[[], SoloCandidate]


@pytest.fixture
def store() -> FaultyCellStore:
    return FaultyCellStore()


class Clock:
    now_ms = 5_000_000


@pytest.fixture
def process(store: FaultyCellStore) -> Make:
    """One process after the other."""
    numbers = count(5_480)

    def make() -> SoloCandidate:
        number = next(numbers)
        return SoloCandidate(
            SoloRegistry(store, TABLE),
            SETTINGS,
            f"127.0.0.1:{number}",
            wall_ms=lambda: Clock.now_ms,
            timestamp_of_ms=lambda ms: ms,
            nonce=f"nonce-{number}",
        )

    return make


@pytest.fixture
def start(process: Make) -> Start:
    return lambda: process().attempt()


def held(answer: SoloTenure | StandBy) -> SoloTenure:
    assert isinstance(answer, SoloTenure)
    return answer


def test_each_start_takes_a_range_above_the_last_one(start: Start) -> None:
    first = held(start())
    second = held(start())
    assert first.epoch < first.ceiling <= second.epoch < second.ceiling


def test_the_ceiling_moves_up_with_what_was_reached_and_says_what_is_durable(
    start: Start, store: FaultyCellStore
) -> None:
    tenure = held(start())
    before = tenure.ceiling
    assert tenure.renew(reached=before - 1, durable=before - 2)
    assert tenure.ceiling > before
    stored = SoloRegistry(store, TABLE).read()
    assert stored is not None
    assert stored.epoch == EpochRecord(tenure.epoch, tenure.ceiling, before - 2)


def test_the_first_process_learns_of_the_second_at_its_next_renewal(start: Start) -> None:
    first = held(start())
    second = held(start())
    assert not first.renew()
    assert not first.is_held()
    assert second.renew()
    assert second.is_held()


def test_who_learns_of_a_second_process_ends_and_takes_nothing_back(process: Make) -> None:
    """Two that took turns would both answer for a while at each of them."""
    first, second = process(), process()
    held(first.attempt())
    tenure = held(second.attempt())
    with pytest.raises(Superseded, match=r"started to serve alone, beside this one: it is at 127\.0\.0\.1:5481"):
        first.attempt()
    assert tenure.renew()
    tenure.release()
    assert held(second.attempt()).epoch > tenure.epoch


def test_who_gave_its_lease_up_itself_takes_it_again(process: Make) -> None:
    one = process()
    for _ in range(3):
        tenure = held(one.attempt())
        assert tenure.renew(reached=tenure.ceiling - 1)
        tenure.release()


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.DONE])
def test_who_does_not_know_whether_it_has_begun_tries_again_unless_another_has(
    process: Make, store: FaultyCellStore, fault: Fault
) -> None:
    held(process().attempt())
    one, another = process(), process()
    store.plan("compare_and_set", fault)
    store.plan("get_many", None, Fault.LOST)
    assert isinstance(one.attempt(), StandBy)
    held(one.attempt()).release()
    store.plan("compare_and_set", fault)
    store.plan("get_many", None, Fault.LOST)
    assert isinstance(one.attempt(), StandBy)
    held(another.attempt())
    with pytest.raises(Superseded):
        one.attempt()


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.DONE])
def test_a_start_whose_answer_was_lost_looks_what_stands(start: Start, store: FaultyCellStore, fault: Fault) -> None:
    held(start())
    store.plan("compare_and_set", fault)
    answer = start()
    assert isinstance(answer, SoloTenure if fault is Fault.DONE else StandBy)


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.DONE])
def test_a_renewal_whose_answer_was_lost_looks_what_stands(start: Start, store: FaultyCellStore, fault: Fault) -> None:
    tenure = held(start())
    store.plan("compare_and_set", fault)
    assert tenure.renew(reached=tenure.ceiling - 1)
    stored = SoloRegistry(store, TABLE).read()
    assert stored is not None
    assert stored.epoch.ceiling == tenure.ceiling


def test_while_the_store_is_silent_it_stays_held_below_its_ceiling(start: Start, store: FaultyCellStore) -> None:
    tenure = held(start())
    ceiling = tenure.ceiling
    store.plan("get_many", Fault.LOST)
    assert tenure.renew(reached=ceiling - 1)
    assert tenure.ceiling == ceiling
    assert tenure.renew(reached=ceiling - 1)
    assert tenure.ceiling > ceiling


def test_a_released_one_is_not_held(start: Start) -> None:
    tenure = held(start())
    tenure.release()
    assert not tenure.is_held()
    assert not tenure.renew()


def test_a_store_that_does_not_answer_is_tried_again_later(start: Start, store: FaultyCellStore) -> None:
    held(start())
    store.plan("get_many", Fault.LOST)
    answer = start()
    assert isinstance(answer, StandBy)
    assert answer.problem


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b'{"epoch": 5, "nonce": "n", "address": "h:1"}', b"\xff"])
def test_a_record_that_is_not_understood_is_never_taken_for_a_free_one(
    start: Start, store: FaultyCellStore, data: bytes
) -> None:
    held(start())
    store.put(TABLE, [RowPut(ROW, {RECORD: data})], 2**62)
    with pytest.raises(RecordInvalid):
        start()


def test_a_record_comes_back_as_it_was() -> None:
    record = SoloRecord(EpochRecord(5, 9, 7), "nonce", "[::1]:5480")
    assert SoloRecord.parse(record.encode()) == record
