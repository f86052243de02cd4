"""Whether a run was right. Everything is judged by timestamps, against what the commit table says in the end.

``histories.check`` judges what the clients read and when they began; here is what only the room can see: what was told
to whom, by whom, and what lay in the store at that moment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from client import Aborted
from commit_table import Committed
from histories import History, Operation, OperationKind, Outcome, RealTime, RecordedTransaction, check
from tests.simulation.coordinator import Takeover
from tests.simulation.journal import Journal, Record, Told
from tests.simulation.room import Room
from tests.simulation.timestamps import shown, shown_in
from tests.simulation.truth import Landings, Truth
from tests.simulation.wiretap import Reply, commits_in
from wire import BeginReply, CommitReply


def anomalies(room: Room, truth: Truth, landings: Landings) -> list[str]:
    """Everything that was wrong, a sentence each."""
    return [
        *room.kernel.defects,
        *judged_by_clients(room.journal, truth),
        *_timestamps(room.wiretap.replies, room.ensemble.takeovers),
        *_told_twice(room.wiretap.replies),
        *_deposed(room.wiretap.replies, room.ensemble.takeovers, landings),
        *_written_in_other_epochs(landings, room.ensemble.takeovers),
    ]


def judged_by_clients(journal: Journal, truth: Truth) -> list[str]:
    """What is wrong with what the clients read and were told."""
    return [
        *_told(journal, truth),
        *_answers(journal, truth),
        *(shown_in(str(anomaly)) for anomaly in check(history_of(truth))),
    ]


def history_of(truth: Truth) -> History:
    """The run as the checker of histories takes it, with the outcomes as they really are."""
    return History(tuple(_transaction(record, truth) for record in truth.records))


def _transaction(record: Record, truth: Truth) -> RecordedTransaction:
    commit = truth.committed.get(record.start)
    if not record.writes and (commit is not None or record.told is Told.COMMITTED):
        commit = record.snapshot  # it has no place of its own in the order of commits
    operations = tuple(
        Operation(OperationKind.WRITE if access.is_write else OperationKind.READ, access.cell, access.value or None)
        for access in record.accesses
    )
    return RecordedTransaction(
        process=record.process,
        id=record.start,
        snapshot=record.snapshot,
        outcome=Outcome.ABORTED if commit is None else Outcome.COMMITTED,
        operations=operations,
        commit_timestamp=commit,
        reason=record.error,
        real_time=RealTime(
            record.begin_sent,
            record.begin_answered,
            record.commit_sent,
            record.ended if record.told is Told.COMMITTED else None,
        ),
        guarded=frozenset(record.guarded),
    )


def _told(journal: Journal, truth: Truth) -> Iterator[str]:
    """An acknowledged commit is never lost, an aborted one never comes back."""
    for record in journal.records:
        commit = truth.committed.get(record.start)
        who = f"transaction {shown(record.start)} of {record.process}"
        if record.told is Told.COMMITTED and record.writes:
            if commit is None:
                yield f"lost commit: {who} was told that it committed, and the commit table says that it did not"
            elif record.commit_timestamp not in (None, commit):
                told = shown(record.commit_timestamp or 0)
                yield f"two commits: {who} was told {told}, the commit table says {shown(commit)}"
        if record.told is Told.ABORTED and commit is not None:
            yield f"aborted and committed: {who} was told that it was aborted, and it committed at {shown(commit)}"


def _answers(journal: Journal, truth: Truth) -> Iterator[str]:
    """An outcome that somebody was told is final."""
    for answer in journal.answers:
        now = truth.outcomes.get(answer.start)
        who = f"{answer.process} asked about {shown(answer.start)}"
        if isinstance(answer.outcome, Committed) and answer.outcome != now:
            yield f"outcome changed: {who} and was told {answer.outcome}, now it is {now}"
        if isinstance(answer.outcome, Aborted) and isinstance(now, Committed):
            yield f"outcome changed: {who} and was told that it never commits, now it is {now}"


def _timestamps(replies: list[Reply], takeovers: list[Takeover]) -> Iterator[str]:
    """Each timestamp is given to one transaction, begin or commit, and lies in the epoch of who gave it."""
    owners: dict[int, str] = {}
    for reply in replies:
        message = reply.message
        given: dict[int, str] = {}
        if isinstance(message, BeginReply):
            first = message.first_start_timestamp
            given = {first + offset: f"begin {first + offset}" for offset in range(message.count)}
            if _epoch_of(first, takeovers) != message.epoch or _epoch_of(message.snapshot, takeovers) > message.epoch:
                yield f"{reply.process} gave {shown(first)} as one of epoch {shown(message.epoch)}, which it is not"
        elif isinstance(message, CommitReply):
            given = {commit: f"commit of {start}" for start, commit in commits_in(reply)}
        for timestamp, use in given.items():
            if owners.setdefault(timestamp, use) != use:
                yield f"timestamp {shown(timestamp)} was given twice: {owners[timestamp]}, and {use} by {reply.process}"


def _told_twice(replies: list[Reply]) -> Iterator[str]:
    """Whoever asks, in whatever way, gets the same commit timestamp of a transaction."""
    told: defaultdict[int, set[int]] = defaultdict(set)
    for reply in replies:
        for start, commit in commits_in(reply):
            told[start].add(commit)
    for start, commits in told.items():
        if len(commits) > 1:
            yield f"two commits: {shown(start)} was said to have committed at {sorted(map(shown, commits))}"


def _deposed(replies: list[Reply], takeovers: list[Takeover], landings: Landings) -> Iterator[str]:
    """What a primary calls committed in its epoch was in the commit table before the next epoch began."""
    ends = {before.epoch: after for before, after in pairwise(takeovers)}
    for reply in replies:
        for start, commit in commits_in(reply) if isinstance(reply.message, CommitReply) else ():
            epoch = _epoch_of(commit, takeovers)
            landed, end = landings.first.get((start, commit)), ends.get(epoch)
            if landed is None or landed > reply.moment:
                yield f"{reply.process} called {shown(start)} committed before it was in the commit table"
            elif end is not None and landed > end.moment and _holder(epoch, takeovers) == reply.process:
                yield (
                    f"deposed primary: {reply.process} called {shown(start)} committed at {shown(commit)}, which "
                    f"reached the commit table after epoch {shown(end.epoch)} had begun"
                )


def _written_in_other_epochs(landings: Landings, takeovers: list[Takeover]) -> Iterator[str]:
    """A commit is recorded in the name of the epoch that its timestamp belongs to."""
    for (start, commit), epochs in landings.epochs.items():
        if epochs != {_epoch_of(commit, takeovers)}:
            yield f"commit {shown(commit)} of {shown(start)} was recorded in the name of {sorted(map(shown, epochs))}"


def late_writes(landings: Landings, takeovers: list[Takeover]) -> int:
    """How many commit records reached the commit table after their epoch had ended: what fences are for."""
    ends = {before.epoch: after.moment for before, after in pairwise(takeovers)}
    landed = ((_epoch_of(commit, takeovers), moment) for (_, commit), moment in landings.first.items())
    return sum(epoch in ends and moment > ends[epoch] for epoch, moment in landed)


def _epoch_of(timestamp: int, takeovers: list[Takeover]) -> int:
    return max((each.epoch for each in takeovers if each.epoch <= timestamp), default=0)


def _holder(epoch: int, takeovers: list[Takeover]) -> str:
    return next(each.holder for each in takeovers if each.epoch == epoch)
