"""Histories written by hand: ``committed(10, 5, 20, "r x -, w x 10")`` is a transaction with its operations."""

from __future__ import annotations

from dataclasses import replace

from histories import History, Operation, OperationKind, Outcome, RealTime, RecordedTransaction


def operations(text: str) -> tuple[Operation, ...]:
    """``r`` or ``w``, key, value and perhaps a payload, separated by commas; ``-`` is nothing."""
    return tuple(_operation(part.split()) for part in text.split(",") if part.strip())


def committed(identity: int, snapshot: int, commit: int, text: str = "", process: str = "p") -> RecordedTransaction:
    return RecordedTransaction(process, identity, snapshot, Outcome.COMMITTED, operations(text), commit)


def reader(identity: int, snapshot: int, text: str = "", process: str = "p") -> RecordedTransaction:
    return committed(identity, snapshot, snapshot, text, process)


def aborted(identity: int, snapshot: int, text: str = "", reason: str = "Conflict") -> RecordedTransaction:
    return RecordedTransaction("p", identity, snapshot, Outcome.ABORTED, operations(text), reason=reason)


def unknown(identity: int, snapshot: int, text: str = "") -> RecordedTransaction:
    return RecordedTransaction("p", identity, snapshot, Outcome.UNKNOWN, operations(text), reason="OutcomeUnknown")


def at(transaction: RecordedTransaction, *times_ns: int) -> RecordedTransaction:
    """With real times: begin sent and answered, commit sent and answered."""
    return replace(transaction, real_time=RealTime(*times_ns))


def guarding(transaction: RecordedTransaction, *keys: str) -> RecordedTransaction:
    """With guarded keys."""
    return replace(transaction, guarded=frozenset(keys))


def history(*transactions: RecordedTransaction) -> History:
    return History(transactions)


def _operation(parts: list[str]) -> Operation:
    kind, key, value, *payload = parts
    return Operation(
        OperationKind(kind), key, None if value == "-" else int(value), int(payload[0]) if payload else None
    )
