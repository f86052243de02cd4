"""Transactions whose outcome nobody learned: once read they did commit, and their commit needs a place. Pure.

Of the commit timestamp of such a transaction only this is known: it is above its start and above whatever it replaced;
it is at or below the snapshots that saw it, and the snapshot of the next writer of each of its keys; and it is above
the snapshots that saw one of its keys as it was before. Where that leaves no place, the history is not snapshot
isolated. Where it leaves one, the history counts as consistent: two such transactions are not set against each other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from histories.anomalies import Anomaly, Kind
from histories.history import History, Key, RecordedTransaction
from histories.reads import AT_THE_END, Sighting, Sightings
from histories.versions import VersionIndex

WHOEVER_READ_THE_END = 0
"""In place of a reader's id."""


class _Reading(NamedTuple):
    """What somebody found in a key."""

    snapshot: int
    reader: int
    value: int | None


class _Bound(NamedTuple):
    """A limit of a commit timestamp, and whose doing it is."""

    timestamp: int
    because: int


def check_unsettled(
    history: History, index: VersionIndex, sightings: Sightings, final_state: Mapping[Key, int | None] | None
) -> Iterator[Anomaly]:
    """A finding for each transaction that was seen, and has no place among the others."""
    if not sightings:
        return
    keys = {key for writer in sightings for key in writer.last_writes()}
    readings = _readings(history, keys, final_state)
    for writer, seen in sightings.items():
        start = writer.id if history.ids_are_timestamps else writer.snapshot
        above = _above(index, writer, start, seen)
        up_to = _up_to(index, writer, seen)
        missed = _who_missed_it(index, readings, writer, up_to.timestamp)
        if above.timestamp >= up_to.timestamp:
            yield _finding(writer, seen, (above.because, up_to.because))
        elif missed is not None:
            yield _finding(writer, seen, (up_to.because, missed))


def _readings(
    history: History, keys: set[Key], final_state: Mapping[Key, int | None] | None
) -> dict[Key, list[_Reading]]:
    """Who found what in these keys, by snapshot."""
    readings: dict[Key, list[_Reading]] = defaultdict(list)
    for transaction in history.transactions:
        for key, operation in transaction.external_reads().items():
            if key in keys:
                readings[key].append(_Reading(transaction.snapshot, transaction.id, operation.value))
    for key in keys:
        if final_state is not None:
            readings[key].append(_Reading(AT_THE_END, WHOEVER_READ_THE_END, final_state.get(key)))
        readings[key].sort(key=lambda reading: reading.snapshot)
    return readings


def _above(index: VersionIndex, writer: RecordedTransaction, start: int, seen: list[Sighting]) -> _Bound:
    """The start, or the last version that it must have replaced to be seen."""
    bounds = [_Bound(start, writer.id)]
    for sighting in seen:
        replaced = index.visible(sighting.key, sighting.snapshot)
        if replaced is not None:
            bounds.append(_Bound(replaced.commit_timestamp, replaced.writer.id))
    return max(bounds)


def _up_to(index: VersionIndex, writer: RecordedTransaction, seen: list[Sighting]) -> _Bound:
    """The oldest snapshot that saw it, or that of a next writer of one of its keys, who else lost its update."""
    bounds = [
        _Bound(sighting.snapshot, sighting.reader.id if sighting.reader else WHOEVER_READ_THE_END) for sighting in seen
    ]
    for key in writer.last_writes():
        following = index.first_after(key, writer.snapshot)
        if following is not None:
            bounds.append(_Bound(following.writer.snapshot, following.writer.id))
    return min(bounds)


def _who_missed_it(
    index: VersionIndex, readings: Mapping[Key, list[_Reading]], writer: RecordedTransaction, up_to: int
) -> int | None:
    """Who read a key as it was before, at a snapshot at which the commit was there already."""
    for key, written in writer.last_writes().items():
        before = index.visible(key, writer.snapshot)
        following = index.first_after(key, writer.snapshot)
        replaced_at = following.commit_timestamp if following else AT_THE_END + 1
        of_key = readings[key]
        for position in range(bisect_left(of_key, up_to, key=lambda each: each.snapshot), len(of_key)):
            reading = of_key[position]
            if reading.snapshot >= replaced_at:
                break
            as_before = reading.value == (before.value if before else None) != written.value
            if as_before and reading.reader != writer.id and not _may_be_deleted(index, key, reading.value):
                return reading.reader
    return None


def _may_be_deleted(index: VersionIndex, key: Key, value: int | None) -> bool:
    """Whether nothing was found, and that may be the doing of another transaction of unknown outcome."""
    return value is None and bool(index.unknown_deleters(key))


def _finding(writer: RecordedTransaction, seen: list[Sighting], because: tuple[int, ...]) -> Anomaly:
    readers = [sighting.reader.id for sighting in seen if sighting.reader is not None]
    who = f"transaction {readers[0]}" if readers else "whoever read the final state"
    others = [identity for identity in dict.fromkeys([*readers[:1], *because]) if identity not in (0, writer.id)]
    at_the_end = ", and with the final state" * (WHOEVER_READ_THE_END in because)
    text = (
        f"nobody learned the outcome of transaction {writer.id}, and {who} read key {seen[0].key!r} as it left it, so "
        f"it committed; yet no commit timestamp agrees with what transactions {', '.join(map(str, others))} saw and "
        f"wrote{at_the_end}"
    )
    return Anomaly(Kind.NO_PLACE_FOR_COMMIT, text, (writer.id, *others), seen[0].key)
