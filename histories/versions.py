"""Every version of every key, in the order of commits: what a snapshot has to see is one bisection away. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from histories.history import Key, Operation, OperationKind, Outcome, RecordedTransaction


class Version(NamedTuple):
    """What a committed transaction left in a key; ``value`` ``None``: it deleted it."""

    commit_timestamp: int
    value: int | None
    writer: RecordedTransaction


class Writing(NamedTuple):
    """A transaction that wrote a value to a key, committed or not; ``is_last``: it wrote no other there afterwards."""

    writer: RecordedTransaction
    is_last: bool


@dataclass(slots=True)
class _KeyVersions:
    versions: list[Version] = field(default_factory=list)
    commit_timestamps: list[int] = field(default_factory=list)


class VersionIndex:
    """Built once from all transactions of a history."""

    def __init__(self, transactions: Sequence[RecordedTransaction]) -> None:
        self._keys: dict[Key, _KeyVersions] = defaultdict(_KeyVersions)
        self._writings: dict[tuple[Key, int], list[Writing]] = defaultdict(list)
        self._unknown_deleters: dict[Key, list[RecordedTransaction]] = defaultdict(list)
        for transaction in transactions:
            if not transaction.is_read_only:
                self._add(transaction)
        for key in self._keys.values():
            key.versions.sort(key=lambda version: version.commit_timestamp)
            key.commit_timestamps = [version.commit_timestamp for version in key.versions]

    def versions(self) -> Iterator[tuple[Key, Sequence[Version]]]:
        """Each key with its committed versions, oldest first."""
        for key, versions in self._keys.items():
            yield key, versions.versions

    def visible(self, key: Key, snapshot: int) -> Version | None:
        """The committed version that ``snapshot`` sees: the one with the largest commit timestamp at or below it."""
        versions = self._keys.get(key)
        if versions is None:
            return None
        position = bisect_right(versions.commit_timestamps, snapshot)
        return versions.versions[position - 1] if position else None

    def first_after(self, key: Key, timestamp: int) -> Version | None:
        """The oldest committed version above ``timestamp``."""
        versions = self._keys.get(key)
        if versions is None:
            return None
        position = bisect_right(versions.commit_timestamps, timestamp)
        return versions.versions[position] if position < len(versions.versions) else None

    def writings(self, key: Key, value: int) -> Sequence[Writing]:
        """Who wrote that value, whatever became of it. More than one only in a history with ambiguous values."""
        return self._writings.get((key, value), ())

    def ambiguous(self) -> Iterator[tuple[Key, int, Sequence[Writing]]]:
        """Values that were written more than once to one key."""
        for (key, value), writings in self._writings.items():
            if len(writings) > 1:
                yield key, value, writings

    def unknown_deleters(self, key: Key) -> Sequence[RecordedTransaction]:
        """Transactions of unknown outcome that deleted the key at last: any of them may be why nothing was found."""
        return self._unknown_deleters.get(key, ())

    def _add(self, transaction: RecordedTransaction) -> None:
        last: dict[Key, Operation] = transaction.last_writes()
        for operation in transaction.operations:
            if operation.kind is OperationKind.WRITE and operation.value is not None:
                writing = Writing(transaction, last[operation.key] is operation)
                self._writings[operation.key, operation.value].append(writing)
        for key, operation in last.items():
            if transaction.commit_timestamp is not None:
                version = Version(transaction.commit_timestamp, operation.value, transaction)
                self._keys[key].versions.append(version)
            elif transaction.outcome is Outcome.UNKNOWN and operation.value is None:
                self._unknown_deleters[key].append(transaction)
