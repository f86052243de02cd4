from __future__ import annotations

from client import TransactionManager
from drills.flights import Flights, Stage, flight_cells, flights_at, in_words
from histories import Outcome, Recorder, check
from histories.cells import FAMILY
from tests.unit.client.conftest import Installation


def test_flights_wait_for_their_stage_and_rivals_meet(manager: TransactionManager, installation: Installation) -> None:
    del installation
    manager.create_table("flights", [FAMILY])
    recorder = Recorder(manager, flight_cells("flights"))
    flights = Flights(recorder, flights_at(3, "load-1"))
    flights.open()
    assert recorder.history().transactions == ()
    for stage in Stage:
        flights.reach(stage)
    landed = flights.land()
    assert in_words(landed) == {"committed": 4, "Conflict": 1}
    (loser,) = [each for each in landed if each.outcome is Outcome.ABORTED]
    assert "flight/00003/load-1/rival" in loser.last_writes()
    assert check(recorder.history()) == []


def test_keys_of_different_faults_and_processes_differ() -> None:
    keys = [
        key
        for fault in (1, 2)
        for process in ("load-1", "load-2")
        for flight in flights_at(fault, process)
        for key in {flight.key, flight.later_key} - {f"flight/{fault:05d}/{process}/rival"}
    ]
    assert len(keys) == len(set(keys)) == 2 * 2 * (3 * 2 + 2)
