"""Recorded histories of transactions, and whether they were snapshot isolated.

::

    bank = Bank("history_bank")
    bank.setup(manager)
    recorder = Recorder(manager, bank.cells)
    drive(bank, recorder, threads=4, seconds=10.0)
    final_state = bank.final_state(recorder)
    history = recorder.history()
    assert not check(history, final_state) and not bank.check(history)
"""

from histories.anomalies import Anomaly, Kind
from histories.cells import CellMapping
from histories.checker import check
from histories.driver import Driven, drive
from histories.errors import HistoryError, RecorderFull
from histories.history import (
    History,
    Key,
    Operation,
    OperationKind,
    Outcome,
    RealTime,
    RecordedTransaction,
)
from histories.recorder import Recorder, RecordingTransaction

__all__ = [
    "Anomaly",
    "CellMapping",
    "Driven",
    "History",
    "HistoryError",
    "Key",
    "Kind",
    "Operation",
    "OperationKind",
    "Outcome",
    "RealTime",
    "RecordedTransaction",
    "Recorder",
    "RecorderFull",
    "RecordingTransaction",
    "check",
    "drive",
]
