"""A history as lines of JSON: a first line that says what follows, then one line a transaction. Pure.

::

    {"format": "pythia history", "version": 2, "workload": "bank", "ids_are_timestamps": true}
    {"process": "a/0", "id": 7, "snapshot": 5, "outcome": "committed", "commit_timestamp": 9, "reason": "",
     "real_time_ns": [10, 20, 30, 40], "operations": [["r", "bank/1", null, null], ["w", "bank/1", 7, 70]],
     "guarded": ["bank/2"]}

Version 1 had no ``guarded``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from histories.errors import HistoryError
from histories.history import History, Key, Operation, OperationKind, Outcome, RealTime, RecordedTransaction
from histories.parsing import array, parse_json, record, text, whole, whole_or_none
from versions import FormatNotSpoken
from versions.formats import HISTORIES

FORMAT = "pythia history"

_TRANSACTION_FIELDS = {
    "process",
    "id",
    "snapshot",
    "outcome",
    "commit_timestamp",
    "reason",
    "real_time_ns",
    "operations",
}
_KINDS = {kind.value: kind for kind in OperationKind}
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}


def to_lines(history: History) -> Iterator[str]:
    """The lines, without line ends."""
    header = {
        "format": FORMAT,
        "version": HISTORIES.newest,
        "workload": history.workload,
        "ids_are_timestamps": history.ids_are_timestamps,
    }
    yield json.dumps(header)
    for transaction in history.transactions:
        yield json.dumps(_described(transaction))


def from_lines(lines: Iterable[str]) -> History:
    """Read what ``to_lines`` wrote; empty lines are passed over.

    Raises ``HistoryError`` with the number of the line, from 1.
    """
    header: tuple[str | None, bool] | None = None
    transactions: list[RecordedTransaction] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            if header is None:
                header = _header(parse_json(line))
            else:
                transactions.append(_transaction(parse_json(line)))
        except HistoryError as error:
            raise HistoryError(f"line {number}: {error}") from error
    if header is None:
        raise HistoryError(f'there is no line with "format": "{FORMAT}"')
    workload, ids_are_timestamps = header
    return History(tuple(transactions), workload, ids_are_timestamps)


def _described(transaction: RecordedTransaction) -> dict[str, Any]:
    time = transaction.real_time
    times = time and (time.begin_sent_ns, time.begin_answered_ns, time.commit_sent_ns, time.commit_answered_ns)
    return {
        "process": transaction.process,
        "id": transaction.id,
        "snapshot": transaction.snapshot,
        "outcome": transaction.outcome.value,
        "commit_timestamp": transaction.commit_timestamp,
        "reason": transaction.reason,
        "real_time_ns": times,
        "operations": [(each.kind.value, each.key, each.value, each.payload) for each in transaction.operations],
        "guarded": sorted(transaction.guarded, key=str),
    }


def _header(parsed: Any) -> tuple[str | None, bool]:
    if not isinstance(parsed, dict) or parsed.get("format") != FORMAT:
        raise HistoryError(f'the first line of a history is an object with "format": "{FORMAT}"')
    try:
        HISTORIES.require_known(parsed.get("version"))
    except FormatNotSpoken as error:
        raise HistoryError(str(error)) from None
    fields = record(parsed, needed={"format", "version", "workload", "ids_are_timestamps"})
    if not isinstance(fields["ids_are_timestamps"], bool):
        raise HistoryError("ids_are_timestamps is true or false")
    workload = fields["workload"]
    return None if workload is None else text(workload, "workload"), fields["ids_are_timestamps"]


def _transaction(parsed: Any) -> RecordedTransaction:
    fields = record(parsed, needed=_TRANSACTION_FIELDS, optional=frozenset({"guarded"}))
    outcome = _OUTCOMES.get(text(fields["outcome"], "outcome"))
    if outcome is None:
        raise HistoryError(f"outcome is one of {', '.join(_OUTCOMES)}, not {fields['outcome']!r}")
    return RecordedTransaction(
        process=text(fields["process"], "process"),
        id=whole(fields["id"], "id"),
        snapshot=whole(fields["snapshot"], "snapshot"),
        outcome=outcome,
        operations=tuple(_operation(each) for each in array(fields["operations"], "operations")),
        commit_timestamp=whole_or_none(fields["commit_timestamp"], "commit_timestamp"),
        reason=text(fields["reason"], "reason"),
        real_time=None if fields["real_time_ns"] is None else _real_time(fields["real_time_ns"]),
        guarded=frozenset(_key(each) for each in array(fields.get("guarded", []), "guarded")),
    )


def _real_time(parsed: Any) -> RealTime:
    times = array(parsed, "real_time_ns")
    if len(times) != 4:
        raise HistoryError(f"real_time_ns: begin sent, begin answered, commit sent, commit answered; not {times!r}")
    return RealTime(
        whole(times[0], "begin sent"),
        whole(times[1], "begin answered"),
        whole_or_none(times[2], "commit sent"),
        whole_or_none(times[3], "commit answered"),
    )


def _operation(parsed: Any) -> Operation:
    parts = array(parsed, "an operation")
    if len(parts) != 4 or not isinstance(parts[0], str) or parts[0] not in _KINDS:
        raise HistoryError(f'an operation is ["r" or "w", key, value, payload], not {parts!r}')
    kind, key, value, payload = parts
    return Operation(_KINDS[kind], _key(key), whole_or_none(value, "value"), whole_or_none(payload, "payload"))


def _key(value: Any) -> Key:
    return value if isinstance(value, str) else whole(value, "key")
