"""From which moment on whoever follows what changes asks, and the name that he may move along to the next such moment.

No vacuum drops what the name shows, so what has changed since can be told whenever he comes back.
"""

from __future__ import annotations

from client.manager import TransactionManager
from client.snapshots.moments import SINCE_THE_BEGINNING, Moment
from client.snapshots.record import NamedSnapshot


def moment_since(manager: TransactionManager, changed_since: Moment | None) -> int:
    """The timestamp of the earlier moment. Raises ``InvalidRequest`` for one that there is not, ``NoPrimary``."""
    if changed_since is None or changed_since == SINCE_THE_BEGINNING:
        return SINCE_THE_BEGINNING
    return manager.snapshot(at=changed_since).timestamp


def position(manager: TransactionManager, name: str) -> NamedSnapshot | None:
    """Where the name stands; ``None`` where there is none of it yet, or its creation was not finished."""
    return next((each for each in manager.snapshots() if each.name == name and each.is_finished), None)


def move_position(manager: TransactionManager, name: str, timestamp: int) -> None:
    """Have the name stand for this moment: it is created, or moved forward, or left where it is later already.

    Raises ``InvalidRequest`` where somebody else has the name meanwhile, and what ``manager.move_snapshot`` raises.
    """
    standing = position(manager, name)
    if standing is None:
        manager.create_snapshot(name, timestamp)
    elif standing.timestamp < timestamp:
        manager.move_snapshot(name, timestamp)
