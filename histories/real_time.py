"""Whether timestamps agree with one machine's clock: sweeps over begins and commits in the order of time. Pure.

* A begin sent after a commit was answered has a snapshot that includes the commit.
* A begin sent after another begin was answered has no older snapshot.
* A commit sent after a begin was answered comes above that begin's snapshot: else what was read there would change.

Moments with the same reading of the clock are taken for simultaneous, and nothing is demanded of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from histories.anomalies import Anomaly, Kind
from histories.history import RecordedTransaction


class _Event(NamedTuple):
    """At ``time_ns`` it was certain, or asked for, that ``timestamp`` has its place."""

    time_ns: int
    timestamp: int
    transaction: RecordedTransaction


Say = Callable[[_Event, _Event], Anomaly]


def check_real_time(transactions: Iterable[RecordedTransaction]) -> Iterator[Anomaly]:
    """Every transaction that comes after a larger timestamp, with the largest that came before it."""
    sent, answered, commits_sent, commits_answered = _events(transactions)
    yield from _left_behind(commits_answered, sent, _missed_commit)
    yield from _left_behind(answered, sent, _went_back)
    yield from _left_behind(answered, commits_sent, _below_snapshot, equal_is_behind=True)


def _events(
    transactions: Iterable[RecordedTransaction],
) -> tuple[list[_Event], list[_Event], list[_Event], list[_Event]]:
    sent, answered, commits_sent, commits_answered = [], [], [], []
    for each in transactions:
        time = each.real_time
        if time is None:
            continue
        sent.append(_Event(time.begin_sent_ns, each.snapshot, each))
        answered.append(_Event(time.begin_answered_ns, each.snapshot, each))
        if each.commit_timestamp is None or each.is_read_only:
            continue
        if time.commit_sent_ns is not None:
            commits_sent.append(_Event(time.commit_sent_ns, each.commit_timestamp, each))
        if time.commit_answered_ns is not None:
            commits_answered.append(_Event(time.commit_answered_ns, each.commit_timestamp, each))
    return sent, answered, commits_sent, commits_answered


def _left_behind(
    certain: list[_Event], asked: list[_Event], say: Say, *, equal_is_behind: bool = False
) -> Iterator[Anomaly]:
    """Events of ``asked`` whose timestamp is below the largest one that was ``certain`` before them."""
    earlier = iter(sorted(certain, key=lambda event: event.time_ns))
    following = next(earlier, None)
    largest: _Event | None = None
    for event in sorted(asked, key=lambda event: event.time_ns):
        while following is not None and following.time_ns < event.time_ns:
            if largest is None or following.timestamp > largest.timestamp:
                largest = following
            following = next(earlier, None)
        if largest is not None and event.timestamp < largest.timestamp + equal_is_behind:
            yield say(largest, event)


def _missed_commit(commit: _Event, begin: _Event) -> Anomaly:
    text = (
        f"transaction {begin.transaction.id} began {_apart(commit, begin)} after the commit of transaction "
        f"{commit.transaction.id} at {commit.timestamp} was acknowledged, and its snapshot {begin.timestamp} is older"
    )
    return Anomaly(Kind.MISSED_COMMIT, text, (begin.transaction.id, commit.transaction.id))


def _went_back(earlier: _Event, later: _Event) -> Anomaly:
    text = (
        f"transaction {later.transaction.id} began {_apart(earlier, later)} after transaction {earlier.transaction.id} "
        f"had, with snapshot {later.timestamp} where that one had {earlier.timestamp}"
    )
    return Anomaly(Kind.SNAPSHOT_WENT_BACK, text, (later.transaction.id, earlier.transaction.id))


def _below_snapshot(begin: _Event, commit: _Event) -> Anomaly:
    text = (
        f"transaction {commit.transaction.id} committed at {commit.timestamp}, though snapshot {begin.timestamp} of "
        f"transaction {begin.transaction.id} had been handed out {_apart(begin, commit)} before the commit was sent"
    )
    return Anomaly(Kind.COMMIT_BELOW_SNAPSHOT, text, (commit.transaction.id, begin.transaction.id))


def _apart(earlier: _Event, later: _Event) -> str:
    return f"{(later.time_ns - earlier.time_ns) / 1e6:,.3f} ms"
