"""Who takes part: one ephemeral node a process, for people and tools to look at.

Who serves is not decided by it. But whoever raises the installation's level reads from it what everybody works at
(``lease.raising``): so a node is made only at a level that its process was admitted to, and in one multi with a write
of the members' parent, so that a list of members that was read before is known to be out of date.

A member's node carries its session in the name, so that after an expired session a new node is made rather than the old
one, about to vanish, written once more. A watch tells when somebody else removed or overwrote it: who is not seen there
cannot be handed over to, drained, or counted in when the level is raised.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from lease.coordinator import (
    Applied,
    CompareAndSet,
    Coordinator,
    Create,
    Operation,
    Rejected,
    SetData,
    create_root,
)
from lease.errors import CoordinatorUnavailable, LeaseError, LevelRefused, RecordInvalid
from lease.gate import Gate
from lease.paths import ZnodePaths
from lease.records import Member

log = logging.getLogger(__name__)

READ_TIMEOUT_MS = 5000
JOINS_MAX = 3
"""How often one call tries to join: again only where the level was raised in between, or the parent was missing."""
MEMBERS_MAX = 1000


class Membership:
    """This process's node under ``members/``, made again in each new session of the process, and where it is gone."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._coordinator = gate.coordinator
        self._wanted: Member | None = None
        self._written: tuple[Member, int] | None = None
        self._touched = threading.Event()
        """Set once the node may not stand any more as it was written."""
        self._told = ""
        """Why it could not be written, as the log has it; once, though it is tried several times a second."""

    def join(self, member: Member) -> None:
        """Show ``member`` from now on. Where that cannot be written now, ``refresh`` does it later.

        Raises ``LevelRefused``.
        """
        self._wanted = member
        self.refresh()

    def refresh(self) -> None:
        """Write the node if it does not stand in the present session; no I/O when it does. Raises ``LevelRefused``."""
        session_id = self._coordinator.session_id()
        if self._wanted is None or session_id is None:
            return
        if self._written == (self._wanted, session_id) and not self._touched.is_set():
            return
        try:
            stands = self._write(self._wanted, session_id) and self._watch(self._wanted, session_id)
            self._written = (self._wanted, session_id) if stands else None
            self._told = ""
        except LevelRefused:
            raise
        except CoordinatorUnavailable:
            # The lease itself tells a caller that the coordinator does not answer.
            self._written = None
        except LeaseError as error:
            # The lease may be ours to write all the same: then this process serves, and no tool sees it.
            self._written = None
            if self._told != str(error):
                self._told = str(error)
                log.error("not shown among the members, so it cannot be handed over to or drained: %s", str(error))

    def _path(self, member: Member, session_id: int) -> str:
        return f"{self._gate.paths.members}/{member.holder}-{session_id & (2**64 - 1):016x}"

    def _watch(self, member: Member, session_id: int) -> bool:
        """Be told of what happens to the node from now on; whether it stands now."""
        touched = self._touched = threading.Event()  # one of its own: the last one is set by our own write
        node = self._coordinator.read(
            self._path(member, session_id), timeout_ms=self._gate.timeout_ms, synced=True, changed=touched
        )
        return node is not None and node.data == member.encode()

    def _write(self, member: Member, session_id: int) -> bool:
        path = self._path(member, session_id)
        # A node that stands was admitted; what it says of levels is the same throughout a process's life.
        result = self._commit([SetData(path, member.encode(), None)])
        for joins in range(JOINS_MAX):
            if not isinstance(result, Rejected):
                break
            if joins:  # somebody may have removed the parent, too, and left the level
                create_root(self._coordinator, self._gate.paths, self._gate.timeout_ms)
            level = self._gate.admitted()
            joined = SetData(self._gate.paths.members, b"", None)
            create = Create(path, member.encode(), ephemeral=True)
            result = self._commit([self._gate.unchanged(level), joined, create])
        return isinstance(result, Applied)

    def _commit(self, operations: Sequence[Operation]) -> CompareAndSet:
        return self._coordinator.commit(operations, timeout_ms=self._gate.timeout_ms)


def members(coordinator: Coordinator, root: str, *, timeout_ms: float = READ_TIMEOUT_MS) -> list[Member]:
    """Everybody who takes part now, by name, at most 1,000. Raises ``CoordinatorUnavailable``, ``RecordInvalid``."""
    paths = ZnodePaths(root)
    names = coordinator.children(paths.members, timeout_ms=timeout_ms)[:MEMBERS_MAX]
    read = (_member(coordinator, f"{paths.members}/{name}", timeout_ms) for name in names)
    return [member for member in read if member is not None]


def _member(coordinator: Coordinator, path: str, timeout_ms: float) -> Member | None:
    node = coordinator.read(path, timeout_ms=timeout_ms)
    try:
        return None if node is None else Member.parse(node.data)
    except RecordInvalid as error:
        raise RecordInvalid(f"{path}: {error}. If no process of yours wrote it, remove that znode") from None
