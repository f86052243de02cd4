"""A name that is moved along by whoever follows what changes: the moment from which on he will ask.

No vacuum drops what the name shows, so what has changed since can be told whenever he comes back.
"""

from __future__ import annotations

from client.manager import TransactionManager
from client.snapshots.record import NamedSnapshot


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
