"""Raising an installation's level: who stands in the way, and the two writes that do it.

An upgrade replaces the processes one at a time; the level stays until somebody raises it, in this order:

1. *require*: the level's record says that everybody has to work at the new one too. The write checks the version of the
   members' parent as it was before the members were listed: who joined since makes it fail, and who joins later fails.
2. The same is put on record with the data, for those who read it without ZooKeeper; and they are given time to see it.
3. *complete*: the new level may be written. Only once the lease is nobody's, or its holder has written it since step 1.

Invariant: nothing of a new level is written while a process, or a client that looks at the record in time, takes part
that does not know it. The level never goes down; each step may be repeated, by anybody, at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lease.coordinator import Applied, Check, Coordinator, SetData, Unknown
from lease.errors import CoordinatorUnavailable, LeaseError
from lease.gate import StoredLevel, read_level
from lease.membership import members
from lease.paths import ZnodePaths
from lease.records import LeaseRecord, LevelRecord, Member
from versions import LevelRange

TIMEOUT_MS = 5000


class NoLevel(LeaseError):
    """There is no installation: nothing has put a level on record."""


@dataclass(frozen=True, slots=True)
class Attendance:
    """The level, who takes part, and the lease, as read in that order."""

    level: StoredLevel
    members_version: int
    members: tuple[Member, ...]
    lease: LeaseRecord | None

    def target(self, own: LevelRange) -> int:
        """The highest level that everybody works at, the caller included; never below the one that is required."""
        highest = min([own.highest, *(member.levels.highest for member in self.members)])
        return max(highest, self.level.record.required)

    def cannot(self, level: int) -> list[Member]:
        """Who does not work at that level."""
        return [member for member in self.members if level not in member.levels]

    def waits_for(self) -> str | None:
        """Why the level that is required cannot be completed yet; ``None``: it can."""
        lease, required = self.lease, self.level.record.required
        if lease is None or lease.released or lease.level >= required:
            return None
        return f"{lease.holder} holds the lease and has not yet seen that level {required} is required"


def attendance(coordinator: Coordinator, root: str) -> Attendance:
    """Read who takes part. Raises ``NoLevel``, ``CoordinatorUnavailable``, ``RecordInvalid``.

    The reads are in the order that ``require_level`` relies on: the versions first, then what they speak for.
    """
    paths = ZnodePaths(root)
    level = read_level(coordinator, paths, TIMEOUT_MS)
    parent = coordinator.read(paths.members, timeout_ms=TIMEOUT_MS, synced=True)
    if level is None or parent is None:
        raise NoLevel(f"there is no installation at {root}: start an oracle first, or name its root")
    present = members(coordinator, root, timeout_ms=TIMEOUT_MS)
    lease = coordinator.read(paths.lease, timeout_ms=TIMEOUT_MS, synced=True)
    return Attendance(level, parent.version, tuple(present), None if lease is None else LeaseRecord.parse(lease.data))


def require_level(coordinator: Coordinator, root: str, seen: Attendance, level: int) -> bool:
    """Step 1; whether it took place. False: somebody joined, or another call was faster; look again.

    Raises ``CoordinatorUnavailable`` where that is not known: look again, too.
    """
    paths, old = ZnodePaths(root), seen.level.record
    record = LevelRecord(old.level, max(level, old.required))
    operations: list[SetData | Check] = [
        SetData(paths.level, record.encode(), seen.level.version),
        Check(paths.members, seen.members_version),
    ]
    return _applied(coordinator, operations)


def complete(coordinator: Coordinator, root: str, seen: Attendance, target: int) -> bool:
    """Step 3, where ``waits_for`` says nothing; as ``require_level``.

    A level above ``target`` may be required meanwhile: that is for whoever required it, once clients had their time.
    """
    paths, required = ZnodePaths(root), seen.level.record.required
    raised = SetData(paths.level, LevelRecord(min(target, required), required).encode(), seen.level.version)
    return _applied(coordinator, [raised])


def _applied(coordinator: Coordinator, operations: Sequence[SetData | Check]) -> bool:
    result = coordinator.commit(operations, timeout_ms=TIMEOUT_MS)
    if isinstance(result, Unknown):
        raise CoordinatorUnavailable(f"whether the level was raised is not known: {result.reason}")
    return isinstance(result, Applied)
