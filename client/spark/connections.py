"""One manager for each installation that a Python process talks to.

Spark keeps its Python workers for many tasks; a connection for every task would cost more than a small task does. The
number kept is bounded, and a manager is never shared with a forked child, whose sockets it would share.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import OrderedDict
from typing import Final

from client.manager import TransactionManager
from client.settings import ClientSettings

MANAGERS_MAX: Final = 4
"""Installations that one process stays connected to; the one that was not used for longest is closed first."""

_lock = threading.Lock()
_managers: OrderedDict[tuple[int, ClientSettings], TransactionManager] = OrderedDict()


def manager_for(settings: ClientSettings) -> TransactionManager:
    """The manager of this process for an installation, connected when first asked for. Do not close it."""
    key = (os.getpid(), settings)
    with _lock:
        if key not in _managers:
            _managers[key] = TransactionManager.connect(settings)
        _managers.move_to_end(key)
        while len(_managers) > MANAGERS_MAX:
            _managers.popitem(last=False)[1].close()
        return _managers[key]


def close_managers() -> None:
    """Close this process's managers; the next ``manager_for`` connects again."""
    with _lock:
        for key in [key for key in _managers if key[0] == os.getpid()]:
            _managers.pop(key).close()


atexit.register(close_managers)
