"""Who may take part: the installation's level as a process last read it, and what it must hold to write anything.

The level's node changes only when the level is raised. So whatever a process writes in its own right (its member's
node, the lease, the epoch) goes in one multi with a check of that node's version: a process that was admitted at one
level cannot act at another that it does not know. Two writes go without: of a member's node that stands, since it was
admitted when that was made; and of a lease that is given back (``Tenure.release``), since that asserts nothing, and who
takes it then has to be admitted. Whoever joins also writes the parent of the members, which whoever raises the level
checks: so of a join and a raise that meet, one is refused, and looks again (``lease.raising``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lease.coordinator import Check, Coordinator, Create, create_root
from lease.errors import CoordinatorUnavailable, LevelRefused
from lease.paths import ZnodePaths
from lease.records import LevelRecord
from versions import LevelNotSpoken, LevelRange


@dataclass(frozen=True, slots=True)
class StoredLevel:
    """A level record and the version under which it is stored."""

    record: LevelRecord
    version: int


@dataclass(frozen=True, slots=True)
class Gate:
    """Access to one installation's level. ``levels``: what the process works at.

    ``first_level``: at which level an installation begins that has none on record; it may raise
    ``CoordinatorUnavailable`` where that cannot be said yet.
    """

    coordinator: Coordinator
    paths: ZnodePaths
    timeout_ms: float
    levels: LevelRange
    first_level: Callable[[], int]

    def admitted(self) -> StoredLevel:
        """The level, not older than this call; put on record where there is none.

        Raises ``LevelRefused`` where the process may not take part, ``CoordinatorUnavailable``, ``RecordInvalid``.
        """
        stored = read_level(self.coordinator, self.paths, self.timeout_ms) or self._found()
        require(self.levels, stored.record, self.paths.root)
        return stored

    def unchanged(self, stored: StoredLevel) -> Check:
        """What has to be in a multi of a process that was admitted at ``stored``."""
        return Check(self.paths.level, stored.version)

    def _found(self) -> StoredLevel:
        level = self.first_level()
        create_root(self.coordinator, self.paths, self.timeout_ms)
        data = LevelRecord(level, level).encode()
        # Whatever came of it, what stands now counts: another process may have been faster.
        self.coordinator.commit([Create(self.paths.level, data)], timeout_ms=self.timeout_ms)
        stored = read_level(self.coordinator, self.paths, self.timeout_ms)
        if stored is None:
            raise CoordinatorUnavailable(f"the level of {self.paths.root} could not be put on record")
        return stored


def read_level(coordinator: Coordinator, paths: ZnodePaths, timeout_ms: float) -> StoredLevel | None:
    """The level as it is stored now. Raises ``CoordinatorUnavailable``, ``RecordInvalid``."""
    node = coordinator.read(paths.level, timeout_ms=timeout_ms, synced=True)
    return None if node is None else StoredLevel(LevelRecord.parse(node.data), node.version)


def require(levels: LevelRange, record: LevelRecord, root: str) -> None:
    """Raise ``LevelRefused`` unless a process of these levels may take part.

    While the level is being raised it has to know the old one, which is still written, and the new one.
    """
    try:
        levels.require(record.required, f"the installation {root}")
        levels.require(record.level, f"the installation {root}")
    except LevelNotSpoken as error:
        raise LevelRefused(str(error)) from None
