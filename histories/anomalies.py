"""What a check finds: each finding has a kind, a sentence for a person, and the transactions that it is about."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from histories.history import Key


class Kind(Enum):
    """What is wrong. The value is what people read."""

    UNWRITTEN_READ = "a value that nobody wrote was read"
    ABORTED_READ = "a value of an aborted transaction was read"
    INTERMEDIATE_READ = "a value was read that its writer itself had overwritten"
    FUTURE_READ = "a commit after the snapshot was read"
    STALE_READ = "an older version than the snapshot's was read"
    MISSING_VERSION = "a committed version was not found"
    UNREPEATABLE_READ = "a key read twice in a transaction changed"
    OWN_WRITE_NOT_READ = "a transaction did not read its own write"
    LOST_UPDATE = "two overlapping transactions wrote one key and both committed"
    BROKEN_GUARD = "a key changed that a transaction guarded, between its snapshot and its commit"
    AMBIGUOUS_VALUE = "a value was written twice, so that a read does not name its writer"
    DUPLICATE_TIMESTAMP = "a timestamp was handed out twice"
    TIMESTAMP_ORDER = "the timestamps of a transaction are not in order"
    MISSED_COMMIT = "a transaction began after a commit was acknowledged, and does not see it"
    SNAPSHOT_WENT_BACK = "a transaction began after another, with an older snapshot"
    COMMIT_BELOW_SNAPSHOT = "a commit was placed at or below a snapshot handed out before it was sent"
    NO_PLACE_FOR_COMMIT = "a transaction was read, and no commit timestamp agrees with what others saw"
    FINAL_STATE = "the final state is not what the committed transactions left"
    INVARIANT = "a promise of the workload was broken"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One violation. ``transactions``: the ids of those involved, who met it first; ``key`` where it has one."""

    kind: Kind
    text: str
    transactions: tuple[int, ...]
    key: Key | None = None

    def __str__(self) -> str:
        return f"{self.kind.name.lower().replace('_', ' ')}: {self.text}"
