"""Whether a history was snapshot isolated, told from its timestamps in near-linear time. Pure.

Since every transaction says which snapshot it read and where its commit lies, nothing has to be searched for: one order
is claimed, and each read, each pair of neighbouring writers and each moment of real time either fits it or does not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise

from histories.anomalies import Anomaly, Kind
from histories.history import History, Key, RecordedTransaction
from histories.reads import check_final_state, check_reads, new_sightings
from histories.real_time import check_real_time
from histories.unsettled import check_unsettled
from histories.versions import VersionIndex


def check(history: History, final_state: Mapping[Key, int | None] | None = None) -> list[Anomaly]:
    """Every violation of snapshot isolation in ``history``; none: it was snapshot isolated.

    ``final_state``: what was read after everything had ended, key → value; a key that is not in it holds nothing.
    Write skew is no violation, but for what was guarded. 100,000 transactions take seconds.
    """
    index = VersionIndex(history.transactions)
    sightings = new_sightings()
    findings = [
        *_duplicate_timestamps(history),
        *_disordered_timestamps(history),
        *_ambiguous_values(index),
        *check_reads(history, index, sightings),
        *_lost_updates(index),
        *_broken_guards(history, index),
        *check_real_time(history.transactions),
    ]
    if final_state is not None:
        findings += check_final_state(final_state, index, sightings)
    findings += check_unsettled(history, index, sightings, final_state)
    return findings


def _duplicate_timestamps(history: History) -> Iterator[Anomaly]:
    """Start timestamps and the commit timestamps of writers are handed out by one source, each once."""
    users: dict[tuple[str, int], list[tuple[str, int]]] = defaultdict(list)
    for each in history.transactions:
        users["timestamp" if history.ids_are_timestamps else "id", each.id].append(("the id", each.id))
        if each.commit_timestamp is not None and not each.is_read_only:
            users["timestamp", each.commit_timestamp].append(("the commit timestamp", each.id))
    for (what, number), used in users.items():
        if len(used) > 1:
            uses = " and ".join(f"{use} of transaction {identity}" for use, identity in used)
            text = f"the {what} {number} is {uses}"
            yield Anomaly(Kind.DUPLICATE_TIMESTAMP, text, tuple(identity for _, identity in used))


def _disordered_timestamps(history: History) -> Iterator[Anomaly]:
    for each in history.transactions:
        wrong = _disorder(each, history.ids_are_timestamps)
        if wrong is not None:
            yield Anomaly(Kind.TIMESTAMP_ORDER, f"transaction {each.id}: {wrong}", (each.id,))


def _disorder(transaction: RecordedTransaction, id_is_timestamp: bool) -> str | None:
    snapshot, commit = transaction.snapshot, transaction.commit_timestamp
    if id_is_timestamp and snapshot >= transaction.id:
        return f"its snapshot {snapshot} is not below its start timestamp"
    if commit is None:
        return None
    if transaction.is_read_only:
        if commit == snapshot:
            return None
        return f"it wrote nothing, and its commit timestamp {commit} is not its snapshot {snapshot}"
    least = transaction.id if id_is_timestamp else snapshot
    return None if commit > least else f"its commit timestamp {commit} is not above {least}, where it began"


def _ambiguous_values(index: VersionIndex) -> Iterator[Anomaly]:
    for key, value, writings in index.ambiguous():
        writers = tuple(writing.writer.id for writing in writings)
        text = f"value {value} of key {key!r} was written by transactions {', '.join(map(str, writers))}"
        yield Anomaly(Kind.AMBIGUOUS_VALUE, text, writers, key)


def _lost_updates(index: VersionIndex) -> Iterator[Anomaly]:
    """First committer wins. A writer that overlaps any earlier one overlaps the last before it: that one is named."""
    for key, versions in index.versions():
        for first, second in pairwise(versions):
            if second.writer.snapshot < first.commit_timestamp:
                text = (
                    f"transaction {second.writer.id} read key {key!r} at snapshot {second.writer.snapshot} and wrote "
                    f"it at {second.commit_timestamp}, over what transaction {first.writer.id} had committed at "
                    f"{first.commit_timestamp} in between"
                )
                yield Anomaly(Kind.LOST_UPDATE, text, (second.writer.id, first.writer.id), key)


def _broken_guards(history: History, index: VersionIndex) -> Iterator[Anomaly]:
    """Of several that changed a key, the first is named. What the transaction itself wrote lies at its own commit."""
    for each in history.transactions:
        for key in sorted(each.guarded, key=str):
            changed = index.first_after(key, each.snapshot)
            if each.commit_timestamp is not None and changed and changed.commit_timestamp < each.commit_timestamp:
                text = (
                    f"transaction {each.id} guarded key {key!r} from snapshot {each.snapshot} on and committed at "
                    f"{each.commit_timestamp}; transaction {changed.writer.id} had changed it at "
                    f"{changed.commit_timestamp}"
                )
                yield Anomaly(Kind.BROKEN_GUARD, text, (each.id, changed.writer.id), key)
