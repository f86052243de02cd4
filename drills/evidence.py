"""What a drill has recorded, brought together at its end: histories, the final state, the commit table's word."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from client import Committed, TransactionManager
from drills.errors import DrillError
from drills.flights import flight_cells
from drills.load import FLIGHTS, LOADS, LoadSettings, workload_of
from drills.outages import Window
from drills.verdict import Record
from histories import Anomaly, History, Key, Outcome, RecordedTransaction, Recorder, check
from histories.files import load

OUTCOMES_AT_ONCE: Final = 5_000


def gather(
    manager: TransactionManager,
    loads: Sequence[LoadSettings],
    faults: Sequence[Window],
    tenures: Sequence[int],
    *,
    outcomes_from: int = 0,
) -> Record:
    """Everything that the verdict needs. Raises ``HistoryError``, and the errors of the services.

    ``outcomes_from``: the first start timestamp of whose outcome the commit table still has to know.
    """
    histories = {name: _merged(loads, name) for name in (*LOADS, FLIGHTS)}
    flight_keys = [key for each in histories[FLIGHTS].transactions for key in each.last_writes()]
    final_state, readers = _final_state(manager, loads[0].tables, flight_keys)
    for name, reader in readers.items():
        histories[name] = History((*histories[name].transactions, *reader), histories[name].workload)
    transactions = tuple(each for history in histories.values() for each in history.transactions)
    return Record(
        transactions=transactions,
        begun=_begun(loads),
        tenures=tenures,
        outcomes=_outcomes(manager, transactions),
        anomalies=_anomalies(histories, transactions, final_state, loads[0].tables),
        faults=faults,
        outcomes_from=outcomes_from,
    )


def _merged(loads: Sequence[LoadSettings], name: str) -> History:
    return History.merged(load(each.history_file(name)) for each in loads)


def _final_state(
    manager: TransactionManager, tables: str, flight_keys: Sequence[Key]
) -> tuple[dict[Key, int | None], dict[str, tuple[RecordedTransaction, ...]]]:
    """What every key of every workload holds, and the transactions that read it, which are evidence themselves."""
    state: dict[Key, int | None] = {}
    readers: dict[str, tuple[RecordedTransaction, ...]] = {}
    for name in LOADS:
        workload = workload_of(name, tables)
        recorder = Recorder(manager, workload.cells, process="final")
        state |= workload.final_state(recorder)
        readers[name] = recorder.history().transactions
    readers[FLIGHTS] = ()
    if not flight_keys:  # nothing was opened for a fault
        return state, readers
    recorder = Recorder(manager, flight_cells(f"{tables}_{FLIGHTS}"), process="final")
    flown = recorder.run(lambda transaction: transaction.scan(flight_keys), read_only=True)
    if flown.outcome is not Outcome.COMMITTED:
        raise DrillError(f"the final state of the transactions in flight could not be read: {flown.reason}")
    state |= {operation.key: operation.value for operation in flown.operations}
    readers[FLIGHTS] = recorder.history().transactions
    return state, readers


def _begun(loads: Iterable[LoadSettings]) -> dict[int, int]:
    return {start: epoch for each in loads for start, epoch in json.loads(each.begun_file.read_text(encoding="utf-8"))}


def _outcomes(manager: TransactionManager, transactions: Iterable[RecordedTransaction]) -> dict[int, int | None]:
    """What the commit table says of everything that was acknowledged and wrote something."""
    acknowledged = [each.id for each in transactions if each.commit_timestamp is not None and not each.is_read_only]
    found: dict[int, int | None] = {}
    for first in range(0, len(acknowledged), OUTCOMES_AT_ONCE):
        outcomes = manager.commit_table.outcomes(acknowledged[first : first + OUTCOMES_AT_ONCE])
        for start_timestamp, outcome in outcomes.items():
            found[start_timestamp] = outcome.commit_timestamp if isinstance(outcome, Committed) else None
    return found


def _anomalies(
    histories: Mapping[str, History],
    transactions: tuple[RecordedTransaction, ...],
    final_state: Mapping[Key, int | None],
    tables: str,
) -> list[Anomaly]:
    """What is wrong with all of it together, and with each workload's own promise."""
    found = check(History(transactions), final_state)
    for name in LOADS:
        found += workload_of(name, tables).check(histories[name])
    return found
