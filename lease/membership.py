"""Who takes part: one ephemeral node a process, for people and tools to look at. Nothing is decided by it.

A member's node carries its session in the name, so that after an expired session a new node is made rather than the old
one, about to vanish, written once more.
"""

from __future__ import annotations

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
from lease.errors import LeaseError
from lease.paths import ZnodePaths
from lease.records import Member

READ_TIMEOUT_MS = 5000
MEMBERS_MAX = 1000


class Membership:
    """This process's node under ``members/``, made again whenever the coordinator gave the process a new session."""

    def __init__(self, coordinator: Coordinator, paths: ZnodePaths, timeout_ms: float) -> None:
        self._coordinator = coordinator
        self._paths = paths
        self._timeout_ms = timeout_ms
        self._wanted: Member | None = None
        self._written: tuple[Member, int] | None = None

    def join(self, member: Member) -> None:
        """Show ``member`` from now on. Where that cannot be written now, ``refresh`` does it later."""
        self._wanted = member
        self.refresh()

    def refresh(self) -> None:
        """Write the node if it does not stand in the present session; no I/O when it does. Raises nothing."""
        session_id = self._coordinator.session_id()
        if self._wanted is None or session_id is None or self._written == (self._wanted, session_id):
            return
        try:
            if self._write(self._wanted, session_id):
                self._written = (self._wanted, session_id)
        except LeaseError:
            # Only a display: the lease itself tells a caller that the coordinator does not answer.
            self._written = None

    def _write(self, member: Member, session_id: int) -> bool:
        path = f"{self._paths.members}/{member.holder}-{session_id & (2**64 - 1):016x}"
        update, create = SetData(path, member.encode(), None), Create(path, member.encode(), ephemeral=True)
        result = self._commit(update)
        if isinstance(result, Rejected):
            result = self._commit(create)
        if isinstance(result, Rejected):
            create_root(self._coordinator, self._paths, self._timeout_ms)
            result = self._commit(create)
        return isinstance(result, Applied)

    def _commit(self, operation: Operation) -> CompareAndSet:
        return self._coordinator.commit([operation], timeout_ms=self._timeout_ms)


def members(coordinator: Coordinator, root: str, *, timeout_ms: float = READ_TIMEOUT_MS) -> list[Member]:
    """Everybody who takes part now, by name, at most 1,000. Raises ``CoordinatorUnavailable``, ``RecordInvalid``."""
    paths = ZnodePaths(root)
    names = coordinator.children(paths.members, timeout_ms=timeout_ms)[:MEMBERS_MAX]
    nodes = [coordinator.read(f"{paths.members}/{name}", timeout_ms=timeout_ms) for name in names]
    return [Member.parse(node.data) for node in nodes if node is not None]
