"""The public key-value form of a history, which other checkers of snapshot isolation read as well. Pure.

It is the input of TimeKiller (Chronos): a JSON array of committed transactions, each with the timestamp that it read
at (``sts``, our snapshot), its commit timestamp (``cts``) and its operations on whole-number keys::

    [{"tid": 7, "sid": 0, "sts": {"p": 1, "l": 5}, "cts": {"p": 1, "l": 9}, "ops": [{"t": "r", "k": 3, "v": null}]}]

A timestamp is a pair there: milliseconds and the counter below them. Payloads, outcomes other than *committed*, real
times and the names of keys have no place in this form.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from commit_table.timestamps import COUNTER_BITS, counter_of, milliseconds_of
from histories.errors import HistoryError
from histories.history import History, Key, Operation, OperationKind, Outcome, RecordedTransaction
from histories.parsing import array, parse_json, record, whole, whole_or_none

_KINDS = {
    "r": OperationKind.READ,
    "read": OperationKind.READ,
    "w": OperationKind.WRITE,
    "write": OperationKind.WRITE,
}

Stamp = tuple[int, int]
"""The two parts of a timestamp as the form has them."""


def to_key_value(history: History) -> str:
    """The committed transactions, those of a session in their order.

    Keys stay as they are where all are whole numbers; otherwise they are numbered from 0 in the order of their names.
    """
    committed = [each for each in history.transactions if each.outcome is Outcome.COMMITTED]
    if history.ids_are_timestamps:
        committed.sort(key=lambda each: each.id)
    keys = _numbered(sorted({operation.key for each in committed for operation in each.operations}, key=_order))
    sessions = {process: number for number, process in enumerate(sorted({each.process for each in committed}))}
    return json.dumps([_described(each, sessions[each.process], keys) for each in committed])


def from_key_value(text: str) -> History:
    """The transactions of that form; they are numbered from 1 where not all ids are whole numbers.

    Raises ``HistoryError`` with the number of the transaction (from 0) where it is not as it should be.
    """
    entries = array(parse_json(text), "the public form of a history")
    fields, stamps = [], []
    for number, entry in enumerate(entries):
        try:
            fields.append(record(entry, needed={"tid", "sid", "sts", "cts", "ops"}, optional=frozenset({"rtts"})))
            stamps.append((_stamp(entry["sts"], "sts"), _stamp(entry["cts"], "cts")))
        except HistoryError as error:
            raise HistoryError(f"transaction {number}: {error}") from error
    ids = _identities([entry["tid"] for entry in fields])
    bits = max([COUNTER_BITS, *(counter.bit_length() for pair in stamps for _, counter in pair)])
    transactions = []
    for number, (entry, (start, commit)) in enumerate(zip(fields, stamps, strict=True)):
        try:
            transactions.append(_transaction(ids[number], entry, _composed(start, bits), _composed(commit, bits)))
        except HistoryError as error:
            raise HistoryError(f"transaction {number}: {error}") from error
    return History(tuple(transactions), ids_are_timestamps=False)


def _numbered(keys: Sequence[Key]) -> dict[Key, int]:
    if all(isinstance(key, int) for key in keys):
        return {key: int(key) for key in keys}
    return {key: number for number, key in enumerate(keys)}


def _order(key: Key) -> tuple[bool, int, str]:
    return (False, key, "") if isinstance(key, int) else (True, 0, key)


def _described(transaction: RecordedTransaction, session: int, keys: Mapping[Key, int]) -> dict[str, Any]:
    assert transaction.commit_timestamp is not None, "it is committed"
    return {
        "tid": transaction.id,
        "sid": session,
        "sts": _parts(transaction.snapshot),
        "cts": _parts(transaction.commit_timestamp),
        "ops": [{"t": each.kind.value, "k": keys[each.key], "v": each.value} for each in _told(transaction.operations)],
    }


def _told(operations: Sequence[Operation]) -> list[Operation]:
    """Without reads that only repeat what the one before them of the same key returned."""
    told = []
    last: dict[Key, Operation] = {}
    for operation in operations:
        before = last.get(operation.key)
        repeats = before is not None and before.kind is OperationKind.READ and before.value == operation.value
        if operation.kind is OperationKind.WRITE or not repeats:
            told.append(operation)
        last[operation.key] = operation
    return told


def _parts(timestamp: int) -> dict[str, int]:
    return {"p": milliseconds_of(timestamp), "l": counter_of(timestamp)}


def _stamp(value: Any, what: str) -> Stamp:
    fields = record(value, needed={"p", "l"})
    stamp = whole(fields["p"], f"{what}.p"), whole(fields["l"], f"{what}.l")
    if min(stamp) < 0:
        raise HistoryError(f"{what}: the parts of a timestamp are not below 0, as in {stamp}")
    return stamp


def _composed(stamp: Stamp, bits: int) -> int:
    """One number in the order of the pairs; ``bits`` are enough for every counter of the history."""
    return (stamp[0] << bits) | stamp[1]


def _identities(given: Sequence[Any]) -> Sequence[int]:
    return given if all(type(identity) is int for identity in given) else range(1, len(given) + 1)


def _transaction(identity: int, fields: Mapping[str, Any], snapshot: int, commit: int) -> RecordedTransaction:
    return RecordedTransaction(
        process=str(fields["sid"]),
        id=identity,
        snapshot=snapshot,
        outcome=Outcome.COMMITTED,
        operations=tuple(_operation(each) for each in array(fields["ops"], "ops")),
        commit_timestamp=commit,
    )


def _operation(parsed: Any) -> Operation:
    fields = record(parsed, needed={"t", "k"}, optional=frozenset({"v"}))
    kind = _KINDS.get(fields["t"].lower()) if isinstance(fields["t"], str) else None
    if kind is None:
        raise HistoryError(f"t is one of {', '.join(_KINDS)}, not {fields['t']!r}")
    return Operation(kind, whole(fields["k"], "k"), whole_or_none(fields.get("v"), "v"))
