"""Small workloads that stress one promise each, and say from a history whether it held.

Their own checks judge what an application would see (totals, counts, elements): a second opinion beside
``histories.check``, which judges versions by their timestamps. Cells start absent, and absent has a meaning (an account
with its opening balance, a counter at 0), so that no write goes unrecorded. The bank, the long fork and the set are
those of Jepsen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import ClassVar

from client import TransactionManager
from histories.anomalies import Anomaly, Kind
from histories.cells import FAMILY, CellMapping
from histories.errors import HistoryError
from histories.history import History, Key, Operation, Outcome, RecordedTransaction
from histories.recorder import Recorder, RecordingTransaction

FINAL_READS_MAX = 10
OPENING_BALANCE = 100
"""Of each account of the bank."""


class Workload(ABC):
    """Transactions over one table of its own. Objects of the same class and table may work in several processes."""

    name: ClassVar[str]
    promise: ClassVar[str]
    """What must hold, in a sentence."""
    keys: Sequence[Key]

    def __init__(self, table: str) -> None:
        self.table = table
        self.cells = CellMapping(table)

    def setup(self, manager: TransactionManager) -> None:
        """Make the table, once for all processes. Raises ``InvalidRequest`` where it exists."""
        manager.create_table(self.table, [FAMILY], conflict_level="cell")

    @abstractmethod
    def step(self, recorder: Recorder, random: Random) -> None:
        """Run one transaction, or a few that belong together, with choices by ``random``."""

    def final_state(self, recorder: Recorder) -> dict[Key, int | None]:
        """Key → value of the whole table, read in one last transaction, which is recorded as well.

        Raises ``NoPrimary``, or ``HistoryError`` where no read got through in ``FINAL_READS_MAX`` attempts.
        """
        for _ in range(FINAL_READS_MAX):
            read = recorder.run(lambda transaction: transaction.scan(self.keys), read_only=True)
            if read.outcome is Outcome.COMMITTED:
                return {operation.key: operation.value for operation in read.operations}
        raise HistoryError(f"the final state of {self.table} could not be read, last for {read.reason}")

    @abstractmethod
    def broken(self, history: History) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Where the promise was broken: a sentence each, and the ids of the transactions that show it."""

    def check(self, history: History) -> list[Anomaly]:
        """The workload's own findings in a history of it."""
        return [Anomaly(Kind.INVARIANT, text, transactions) for text, transactions in self.broken(history)]

    def remark(self, history: History) -> str | None:
        """What is worth saying, though nothing is wrong with it."""
        del history
        return None


class Bank(Workload):
    """Transfers between accounts."""

    name = "bank"
    promise = "every snapshot of all accounts has the same total, and no account is overdrawn"

    def __init__(self, table: str, accounts: int = 8) -> None:
        super().__init__(table)
        self.keys = [f"account/{number:03d}" for number in range(accounts)]

    def step(self, recorder: Recorder, random: Random) -> None:
        """A transfer, or a look at all accounts: by one scan, or by one read each in any order."""
        if random.random() < 0.6:
            source, target = random.sample(self.keys, 2)
            recorder.run(lambda transaction: self._transfer(transaction, source, target, random))
        elif random.random() < 0.5:
            recorder.run(lambda transaction: transaction.scan(self.keys), read_only=True)
        else:
            order = random.sample(self.keys, len(self.keys))
            recorder.run(lambda transaction: [transaction.read(key) for key in order], read_only=True)

    def broken(self, history: History) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Snapshots with another total."""
        total = len(self.keys) * OPENING_BALANCE
        for transaction in history.transactions:
            reads = transaction.external_reads()
            balances = [self._balance(reads[key]) for key in self.keys if key in reads]
            if balances and min(balances) < 0:
                yield f"transaction {transaction.id} saw an account at {min(balances)}", (transaction.id,)
            if len(balances) == len(self.keys) and sum(balances) != total:
                yield f"transaction {transaction.id} saw {sum(balances)} in all, not {total}", (transaction.id,)

    def _transfer(self, transaction: RecordingTransaction, source: Key, target: Key, random: Random) -> None:
        balances = {key: self._balance(transaction.read(key)) for key in (source, target)}
        amount = random.randint(1, OPENING_BALANCE // 4)
        if balances[source] >= amount:
            transaction.write(source, balances[source] - amount)
            transaction.write(target, balances[target] + amount)
        if random.random() < 0.25:
            transaction.read(random.choice([source, target]))  # its own write, or the same as before

    def _balance(self, read: Operation) -> int:
        return OPENING_BALANCE if read.payload is None else read.payload


class GrowingSet(Workload):
    """Elements are added to sets and never removed; readers scan a whole set."""

    name = "set"
    promise = "an element once seen is in every later snapshot, and what was acknowledged is there at the end"

    def __init__(self, table: str, sets: int = 16, elements: int = 64) -> None:
        super().__init__(table)
        self.sets = [[f"set/{one:03d}/{number:04d}" for number in range(elements)] for one in range(sets)]
        self.keys = [key for one in self.sets for key in one]

    def step(self, recorder: Recorder, random: Random) -> None:
        """Scan a set, and mostly add an element that it does not have."""
        chosen = random.choice(self.sets)

        def add(transaction: RecordingTransaction) -> None:
            absent = [read.key for read in transaction.scan(chosen) if read.value is None]
            if absent and random.random() < 0.7:
                transaction.write(random.choice(absent))

        recorder.run(add)

    def broken(self, history: History) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Elements that went away."""
        seen = [(each, each.external_reads()) for each in history.transactions]
        added = [(key, each) for each in history.transactions for key in each.last_writes()]
        for elements in self.sets:
            readers = [
                (each, {key for key in elements if reads[key].value is not None})
                for each, reads in seen
                if reads.keys() >= set(elements)
            ]
            readers.sort(key=lambda reader: reader[0].snapshot)
            for (earlier, before), (later, after) in pairwise(readers):
                if before - after:
                    text = f"transaction {earlier.id} saw {sorted(before - after)}, and the later {later.id} does not"
                    yield text, (later.id, earlier.id)
            for last, present in readers[-1:]:
                missing = set(elements) - present
                for key, writer in added:
                    if key in missing and _acknowledged_before(writer, last):
                        text = f"transaction {writer.id} added {key}, and the last reader, {last.id}, misses it"
                        yield text, (last.id, writer.id)


class LongFork(Workload):
    """Independent writers of two keys, and readers of both in either order."""

    name = "long-fork"
    promise = "no two readers see two independent writes in different orders"

    def __init__(self, table: str, pairs: int = 3) -> None:
        super().__init__(table)
        self.pairs = [(f"pair/{number:03d}/x", f"pair/{number:03d}/y") for number in range(pairs)]
        self.keys = [key for pair in self.pairs for key in pair]

    def step(self, recorder: Recorder, random: Random) -> None:
        """Write one key, or read both."""
        pair = random.sample(random.choice(self.pairs), 2)
        if random.random() < 0.5:
            recorder.run(lambda transaction: _increment(transaction, pair[0]))
        else:
            recorder.run(lambda transaction: [transaction.read(key) for key in pair], read_only=True)

    def broken(self, history: History) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Readers of a pair that disagree about the order."""
        for x, y in self.pairs:
            seen = []
            for each in history.transactions:
                reads = each.external_reads()
                if x in reads and y in reads:
                    seen.append((_count(reads[x]), _count(reads[y]), each.id))
            for (_, y_before, one), (_, y_after, other) in pairwise(sorted(seen)):
                if y_after < y_before:
                    text = f"transaction {one} saw {x} before and {y} after what transaction {other} saw"
                    yield text, (one, other)


class Counter(Workload):
    """Increments of a few counters."""

    name = "counter"
    promise = "a counter stands at the number of increments that committed"

    def __init__(self, table: str, counters: int = 4) -> None:
        super().__init__(table)
        self.keys = [f"counter/{number:03d}" for number in range(counters)]

    def step(self, recorder: Recorder, random: Random) -> None:
        """Increment one counter, or read all."""
        if random.random() < 0.8:
            key = random.choice(self.keys)
            recorder.run(lambda transaction: _increment(transaction, key))
        else:
            recorder.run(lambda transaction: transaction.scan(self.keys), read_only=True)

    def broken(self, history: History) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Counters outside what had been acknowledged before they were read, and what had been sent by then."""
        for key in self.keys:
            writers = [each for each in history.transactions if key in each.last_writes()]
            answered, sent = _commit_times(writers)
            for each in history.transactions:
                read = each.external_reads().get(key)
                if read is None or each.real_time is None:
                    continue
                least = bisect_left(answered, each.real_time.begin_sent_ns)
                most = bisect_right(sent, each.real_time.begin_answered_ns)
                if not least <= _count(read) <= most:
                    text = f"transaction {each.id} saw {key} at {_count(read)}, which is not from {least} to {most}"
                    yield text, (each.id,)


class Register(Workload):
    """One cell that only ever moves forward."""

    name = "register"
    promise = "no session sees the register go back"

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.keys = ["register"]

    def step(self, recorder: Recorder, random: Random) -> None:
        """Move it, or read it."""
        (key,) = self.keys
        if random.random() < 0.4:
            recorder.run(lambda transaction: _increment(transaction, key))
        else:
            recorder.run(lambda transaction: transaction.read(key), read_only=True)

    def broken(self, history: History) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Sessions in which it went back."""
        (key,) = self.keys
        last: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        for each in history.transactions:
            read, written = each.external_reads().get(key), each.last_writes().get(key)
            stood, before = last[each.process]
            if read is not None and _count(read) < stood:
                text = f"session {each.process}: transaction {each.id} saw {_count(read)} after {before} had {stood}"
                yield text, (each.id, before)
            ends_with = written if written is not None and each.outcome is Outcome.COMMITTED else read
            if ends_with is not None:
                last[each.process] = max(last[each.process], (_count(ends_with), each.id))


class _Duties(Workload):
    """Pairs of people of whom one has to be on call. Whoever sees both there may sign off; a key is there while one is
    off. ``guards``: whether who signs off guards that the other one is there.
    """

    guards: ClassVar[bool]

    def __init__(self, table: str, duties: int = 4) -> None:
        super().__init__(table)
        self.duties = [(f"duty/{number:03d}/left", f"duty/{number:03d}/right") for number in range(duties)]
        self.keys = [key for duty in self.duties for key in duty]

    def step(self, recorder: Recorder, random: Random) -> None:
        """Both sign off, one transaction within the other; or whoever is off comes back; or somebody looks."""
        left, right = duty = random.choice(self.duties)
        choice = random.random()
        if choice < 0.4:
            recorder.run(lambda transaction: self._sign_off(transaction, left, right, recorder))
        elif choice < 0.7:
            recorder.run(lambda transaction: self._return(transaction, duty))
        else:
            recorder.run(lambda transaction: [transaction.read(key) for key in duty], read_only=True)

    def unattended(self, history: History) -> Iterator[tuple[int, Key]]:
        """The transactions that found nobody on call, and one of the keys of each duty."""
        for each in history.transactions:
            reads = each.external_reads()
            for duty in self.duties:
                if all(key in reads and _is_off(reads[key]) for key in duty):
                    yield each.id, duty[0]

    def _sign_off(self, transaction: RecordingTransaction, own: Key, other: Key, within: Recorder | None) -> None:
        reads = [transaction.read(own), transaction.read(other, guarded=self.guards)]
        both_are_there = not any(map(_is_off, reads))
        if within is not None:
            within.run(lambda inner: self._sign_off(inner, other, own, None))
        if both_are_there:
            transaction.write(own)

    @staticmethod
    def _return(transaction: RecordingTransaction, duty: tuple[Key, Key]) -> None:
        for key in duty:
            if _is_off(transaction.read(key)):
                transaction.delete(key)


class WriteSkew(_Duties):
    """Two people on call sign off at the same time, each because the other is there: allowed, and made to happen."""

    name = "write-skew"
    promise = "none: write skew is what snapshot isolation allows"
    guards = False

    def broken(self, history: History) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Nothing can be."""
        del history
        yield from ()

    def skews(self, history: History) -> int:
        """How many transactions found nobody on call."""
        return sum(1 for _ in self.unattended(history))

    def remark(self, history: History) -> str:
        """That it happened, and how often."""
        return f"write skew, which snapshot isolation allows, was seen {self.skews(history):,} times"


class OnCall(_Duties):
    """The same where each guards that the other is there: it never happens."""

    name = "on-call"
    promise = "of two people who guard that the other is on call, one always is"
    guards = True

    def broken(self, history: History) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Transactions that found nobody on call."""
        for identity, key in self.unattended(history):
            yield f"transaction {identity} found nobody on call, of the duty of {key!r}", (identity,)


WORKLOADS: dict[str, type[Workload]] = {
    workload.name: workload for workload in (Bank, GrowingSet, LongFork, Counter, Register, WriteSkew, OnCall)
}
"""By name. Each is made with the name of its table; what else it takes has a default."""


def _increment(transaction: RecordingTransaction, key: Key) -> None:
    transaction.write(key, _count(transaction.read(key)) + 1)


def _count(operation: Operation) -> int:
    return operation.payload or 0


def _is_off(read: Operation) -> bool:
    return read.value is not None


def _commit_times(writers: Sequence[RecordedTransaction]) -> tuple[list[int], list[int]]:
    """When commits were answered, and when those were sent that may have taken place, in nanoseconds, sorted."""
    answered, sent = [], []
    for writer in writers:
        time = writer.real_time
        if time is None or time.commit_sent_ns is None or writer.outcome is Outcome.ABORTED:
            continue
        sent.append(time.commit_sent_ns)
        if writer.outcome is Outcome.COMMITTED and time.commit_answered_ns is not None:
            answered.append(time.commit_answered_ns)
    return sorted(answered), sorted(sent)


def _acknowledged_before(writer: RecordedTransaction, reader: RecordedTransaction) -> bool:
    if writer.outcome is not Outcome.COMMITTED or writer.real_time is None or reader.real_time is None:
        return False
    answered = writer.real_time.commit_answered_ns
    return answered is not None and answered < reader.real_time.begin_sent_ns
