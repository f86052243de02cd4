"""Whether anybody was harmed: judged from what clients recorded, after everything has ended. Pure.

``histories.check`` judges whether it was snapshot isolation. Here is what a failover in particular can do wrong.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from drills.outages import Window
from histories import Anomaly, Key, Kind, Outcome, RecordedTransaction
from histories.versions import VersionIndex

CONFLICT = "Conflict"
"""The reason of an abort that a transaction's own conflict brought about."""
_LOSSES = (Kind.MISSING_VERSION, Kind.FINAL_STATE)


@dataclass(frozen=True, slots=True)
class Record:
    """What a drill recorded.

    ``begun``: transaction → the epoch in which the oracle said that it was begun. ``tenures``: every epoch that some
    process announced. ``outcomes``: what the commit table says at the end of each acknowledged transaction, its commit
    timestamp or ``None``; of those that began before ``outcomes_from`` a vacuum had it say nothing any more.
    ``anomalies``: what ``histories.check`` and the workloads' own checks found.
    """

    transactions: Sequence[RecordedTransaction]
    begun: Mapping[int, int]
    tenures: Sequence[int]
    outcomes: Mapping[int, int | None]
    anomalies: Sequence[Anomaly]
    faults: Sequence[Window]
    outcomes_from: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Each harm in a sentence; nothing anywhere: nobody was harmed. ``in_flight``: transactions, by fault."""

    anomalies: Sequence[str] = ()
    lost_commits: Sequence[str] = ()
    duplicate_timestamps: Sequence[str] = ()
    deposed_answers: Sequence[str] = ()
    aborted_by_failover: Sequence[str] = ()
    in_flight: Sequence[int] = ()
    aborted_at: Mapping[int, int] = field(default_factory=dict)
    """Fault (by its place) → how many of ``aborted_by_failover`` were in flight when it struck."""

    @property
    def harms(self) -> dict[str, Sequence[str]]:
        """The five kinds of harm by name."""
        return {
            "anomalies": self.anomalies,
            "lost_commits": self.lost_commits,
            "duplicate_timestamps": self.duplicate_timestamps,
            "deposed_answers": self.deposed_answers,
            "aborted_by_failover": self.aborted_by_failover,
        }

    @property
    def is_clean(self) -> bool:
        """Whether nobody was harmed."""
        return not any(self.harms.values())


def judge(record: Record) -> Verdict:
    """The verdict over one drill."""
    aborted = list(needless_aborts(record.transactions))
    placed = [(_fault_of(each, record.faults), text) for each, text in aborted]
    return Verdict(
        anomalies=[str(each) for each in record.anomalies if each.kind is not Kind.DUPLICATE_TIMESTAMP],
        lost_commits=[*_lost_in_commit_table(record), *_lost_in_tables(record.anomalies)],
        duplicate_timestamps=[str(each) for each in record.anomalies if each.kind is Kind.DUPLICATE_TIMESTAMP],
        deposed_answers=list(deposed_answers(record.transactions, record.begun, record.tenures)),
        aborted_by_failover=[text for _, text in placed],
        in_flight=_in_flight(record.transactions, record.faults),
        aborted_at=Counter(at for at, _ in placed if at is not None),
    )


def _lost_in_commit_table(record: Record) -> Iterator[str]:
    for each in record.transactions:
        if each.commit_timestamp is None or each.is_read_only or each.id < record.outcomes_from:
            continue
        stands = record.outcomes.get(each.id)
        if stands != each.commit_timestamp:
            yield (
                f"transaction {each.id} was acknowledged as committed at {each.commit_timestamp}; the commit table "
                f"has {'no commit of it' if stands is None else stands}"
            )


def _lost_in_tables(anomalies: Iterable[Anomaly]) -> Iterator[str]:
    """A commit whose value nobody finds is lost to its readers, whatever the commit table says."""
    lost = {each.transactions[-1]: each for each in anomalies if each.kind in _LOSSES and each.transactions}
    yield from map(str, lost.values())


def deposed_answers(
    transactions: Sequence[RecordedTransaction], begun: Mapping[int, int], tenures: Iterable[int]
) -> Iterator[str]:
    """Answers that only a primary can have given which had been deposed.

    Every timestamp belongs to one epoch: the one with the largest first timestamp at or below it, of all the epochs
    that processes announced or begins named. Take the moment at which a begin of epoch F was *answered*: F had been
    taken over before it. A commit (or a begin) that was *sent* after that moment, on the same machine's monotonic
    clock, was decided after the take-over; if its timestamp is of an epoch older than F, a primary decided it whose
    epoch had ended. A commit's time of sending is taken before its first request leaves, so that a repeated request
    counts as sent too early rather than too late: nothing is accused wrongly. Besides, a begin whose timestamp lies in
    another epoch than the one the answer named was answered by a primary that went on beyond its own range.
    """
    epochs = sorted({*tenures, *begun.values()})
    sent: list[tuple[int, int, str]] = []
    answered: list[tuple[int, int, int]] = []
    for each in transactions:
        named, lies_in = begun.get(each.id), _epoch_of(each.id, epochs)
        if named is not None and named != lies_in:
            yield f"transaction {each.id} was begun in epoch {named}, and its timestamp belongs to epoch {lies_in}"
        time = each.real_time
        if time is None:
            continue
        answered.append((time.begin_answered_ns, lies_in, each.id))
        sent.append((time.begin_sent_ns, lies_in, f"the begin of transaction {each.id}"))
        if each.commit_timestamp is not None and not each.is_read_only and time.commit_sent_ns is not None:
            what = f"the commit of transaction {each.id} at {each.commit_timestamp}"
            sent.append((time.commit_sent_ns, _epoch_of(each.commit_timestamp, epochs), what))
    yield from _behind(sorted(sent), sorted(answered))


def _behind(sent: Sequence[tuple[int, int, str]], answered: Sequence[tuple[int, int, int]]) -> Iterator[str]:
    """One sweep over time, with the newest epoch in which somebody had begun before each request was sent."""
    newest, witness, position = 0, 0, 0
    for sent_ns, epoch, what in sent:
        while position < len(answered) and answered[position][0] < sent_ns:
            if answered[position][1] > newest:
                newest, witness = answered[position][1:]
            position += 1
        if epoch < newest:
            yield (
                f"{what} was answered in epoch {epoch}, though transaction {witness} had begun in epoch {newest} "
                f"before it was sent"
            )


def _epoch_of(timestamp: int, epochs: Sequence[int]) -> int:
    position = bisect_right(epochs, timestamp)
    return epochs[position - 1] if position else 0


def needless_aborts(transactions: Sequence[RecordedTransaction]) -> Iterator[tuple[RecordedTransaction, str]]:
    """Transactions that ended neither with their commit nor by a conflict of their own.

    A conflict is a transaction's own if somebody else did commit to a key that it wrote or guarded, after its snapshot;
    a conflict that no commit accounts for was made up, by an oracle that had forgotten, or remembered what never came
    to be.
    """
    index = VersionIndex(transactions)
    unknown = {key for each in transactions if each.outcome is Outcome.UNKNOWN for key in each.last_writes()}
    for each in transactions:
        if each.outcome is Outcome.COMMITTED:
            continue
        if each.outcome is Outcome.UNKNOWN:
            yield each, f"transaction {each.id} ended, and nobody can say how"
        elif each.reason != CONFLICT:
            yield each, f"transaction {each.id} was aborted: {each.reason}"
        elif not any(key in unknown or _met(index, key, each) for key in (*each.last_writes(), *each.guarded)):
            yield each, f"transaction {each.id} was aborted for a conflict, and nobody had committed to its keys"


def _met(index: VersionIndex, key: Key, aborted: RecordedTransaction) -> bool:
    """Whether a commit to the key after the transaction's snapshot was sent before the transaction learned its fate."""
    version = index.first_after(key, aborted.snapshot)
    if version is None:
        return False
    theirs, own = version.writer.real_time, aborted.real_time
    if theirs is None or own is None or theirs.commit_sent_ns is None or own.commit_answered_ns is None:
        return True
    return theirs.commit_sent_ns < own.commit_answered_ns


def _in_flight(transactions: Iterable[RecordedTransaction], faults: Sequence[Window]) -> list[int]:
    """By fault: transactions that had been begun when it was inflicted, and had not ended."""
    times = [each.real_time for each in transactions if each.real_time is not None]
    begun = sorted(time.begin_answered_ns for time in times)
    ended = sorted(time.commit_answered_ns for time in times if time.commit_answered_ns is not None)
    return [bisect_right(begun, window.inflicted_ns) - bisect_left(ended, window.inflicted_ns) for window in faults]


def _is_under_way(transaction: RecordedTransaction, window: Window) -> bool:
    time = transaction.real_time
    if time is None or time.begin_answered_ns > window.settled_ns:
        return False
    # Of one that was given up before its commit was sent, and of an unknown one, the end is not recorded.
    end_ns = time.commit_answered_ns
    return end_ns is None or end_ns >= window.inflicted_ns


def _fault_of(transaction: RecordedTransaction, faults: Sequence[Window]) -> int | None:
    """The place of the first fault during which a transaction was under way."""
    for place, window in enumerate(faults):
        if _is_under_way(transaction, window):
            return place
    return None
