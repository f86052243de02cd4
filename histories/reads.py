"""Whether every read returned what its snapshot, or the transaction itself, had written there. Pure.

What a transaction of unknown outcome wrote may be read: it is a *sighting*, collected here and judged as a whole in
``histories.unsettled``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from histories.anomalies import Anomaly, Kind
from histories.history import History, Key, OperationKind, Outcome, RecordedTransaction
from histories.versions import Version, VersionIndex, Writing

AT_THE_END = 2**200
"""A snapshot above every timestamp of every history: what the final state is read at."""


class Sighting(NamedTuple):
    """Somebody saw in a key what a transaction of unknown outcome had left there; ``reader`` ``None``: at the end."""

    key: Key
    snapshot: int
    reader: RecordedTransaction | None


Sightings = dict[RecordedTransaction, list[Sighting]]


class _Judgement(NamedTuple):
    kind: Kind
    clause: str
    others: tuple[int, ...]


def check_reads(history: History, index: VersionIndex, sightings: Sightings) -> Iterator[Anomaly]:
    """Every read of every transaction, aborted ones included: those see a snapshot, too."""
    for transaction in history.transactions:
        yield from _check_transaction(transaction, index, sightings)


def check_final_state(
    final_state: Mapping[Key, int | None], index: VersionIndex, sightings: Sightings
) -> Iterator[Anomaly]:
    """Whether what was read after everything had ended is what the commits left; a key that is not in it is absent."""
    for key in dict.fromkeys([*(key for key, _ in index.versions()), *final_state]):
        value = final_state.get(key)
        judged = _judge(index, key, value, Sighting(key, AT_THE_END, None), sightings)
        if judged is not None:
            text = f"at the end, key {key!r} held {shown(value)}, {judged.clause}"
            yield Anomaly(Kind.FINAL_STATE, text, judged.others, key)


def new_sightings() -> Sightings:
    """None yet."""
    return defaultdict(list)


def shown(value: int | None) -> str:
    """A value in a sentence."""
    return "nothing" if value is None else f"value {value}"


def _check_transaction(
    transaction: RecordedTransaction, index: VersionIndex, sightings: Sightings
) -> Iterator[Anomaly]:
    own: dict[Key, int | None] = {}
    seen: dict[Key, int | None] = {}
    for operation in transaction.operations:
        key, value = operation.key, operation.value
        if operation.kind is OperationKind.WRITE:
            own[key] = value
        elif key in own:
            if value != own[key]:
                yield _own_write_not_read(transaction, key, own[key], value)
        elif key in seen:
            if value != seen[key]:
                yield _unrepeatable(transaction, key, seen[key], value)
        else:
            seen[key] = value
            judged = _judge(index, key, value, Sighting(key, transaction.snapshot, transaction), sightings)
            if judged is not None:
                text = (
                    f"transaction {transaction.id} with snapshot {transaction.snapshot} read {shown(value)} from key "
                    f"{key!r}, {judged.clause}"
                )
                yield Anomaly(judged.kind, text, (transaction.id, *judged.others), key)


def _own_write_not_read(transaction: RecordedTransaction, key: Key, written: int | None, read: int | None) -> Anomaly:
    text = f"transaction {transaction.id} wrote {shown(written)} to key {key!r} and then read {shown(read)} there"
    return Anomaly(Kind.OWN_WRITE_NOT_READ, text, (transaction.id,), key)


def _unrepeatable(transaction: RecordedTransaction, key: Key, first: int | None, second: int | None) -> Anomaly:
    text = f"transaction {transaction.id} read {shown(first)} from key {key!r} and later {shown(second)}"
    return Anomaly(Kind.UNREPEATABLE_READ, text, (transaction.id,), key)


def _judge(
    index: VersionIndex, key: Key, value: int | None, sighting: Sighting, sightings: Sightings
) -> _Judgement | None:
    """What is wrong with finding ``value`` in ``key``; ``None`` where nothing is, or it cannot be told yet."""
    expected = index.visible(key, sighting.snapshot)
    if value == (expected.value if expected else None):
        return None
    if value is None:
        assert expected is not None, "nothing was read, and something was there to be read"
        return _judge_absence(index, expected, sighting, sightings)
    writings = index.writings(key, value)
    for writing in writings:
        if writing.is_last and writing.writer.outcome is Outcome.UNKNOWN and writing.writer is not sighting.reader:
            sightings[writing.writer].append(sighting)
            return None
    if not writings:
        return _Judgement(Kind.UNWRITTEN_READ, "which no transaction wrote there", ())
    return _judge_writing(writings, expected, sighting)


def _judge_absence(
    index: VersionIndex, expected: Version, sighting: Sighting, sightings: Sightings
) -> _Judgement | None:
    deleters = [each for each in index.unknown_deleters(sighting.key) if each is not sighting.reader]
    if deleters:
        if len(deleters) == 1:  # of several nobody can say which it was
            sightings[deleters[0]].append(sighting)
        return None
    clause = (
        f"though transaction {expected.writer.id} had committed {shown(expected.value)} there at "
        f"{expected.commit_timestamp}"
    )
    return _Judgement(Kind.MISSING_VERSION, clause, (expected.writer.id,))


def _judge_writing(writings: Sequence[Writing], expected: Version | None, sighting: Sighting) -> _Judgement:
    writing = min(writings, key=lambda each: each.writer.outcome is not Outcome.COMMITTED)
    writer, snapshot = writing.writer, sighting.snapshot
    if writer is sighting.reader:
        return _Judgement(Kind.FUTURE_READ, "which it wrote there itself only later", ())
    if writer.outcome is Outcome.ABORTED:
        reason = f" ({writer.reason})" if writer.reason else ""
        return _Judgement(
            Kind.ABORTED_READ, f"which transaction {writer.id} wrote, and that was aborted{reason}", (writer.id,)
        )
    if not writing.is_last:
        return _Judgement(
            Kind.INTERMEDIATE_READ, f"which transaction {writer.id} itself overwrote before it ended", (writer.id,)
        )
    commit_timestamp = writer.commit_timestamp
    assert commit_timestamp is not None, "it is neither aborted nor unknown"
    if commit_timestamp > snapshot:
        clause = f"which transaction {writer.id} committed only at {commit_timestamp}"
        return _Judgement(Kind.FUTURE_READ, clause, (writer.id,))
    assert expected is not None, "the writer's version is at or below the snapshot"
    clause = (
        f"which transaction {writer.id} committed at {commit_timestamp}; transaction {expected.writer.id} had "
        f"replaced it with {shown(expected.value)} at {expected.commit_timestamp}"
    )
    return _Judgement(Kind.STALE_READ, clause, (writer.id, expected.writer.id))
