"""One manager for each installation that a Python process talks to.

Spark keeps its Python workers for many tasks; a connection for every task would cost more than a small task does. So
would a collection of all garbage, of which it is told here, too, that a task begins (``collections_of_garbage``). The
number of managers kept is bounded. A forked child uses those that it finds: they connect anew there, and what it closes
is its own.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import OrderedDict
from typing import Final

from client.manager import TransactionManager
from client.settings import ClientSettings
from client.spark.collections_of_garbage import spare_what_stays

MANAGERS_MAX: Final = 4
"""Installations that one process stays connected to; the one that was not used for longest is closed first."""

_lock = threading.Lock()
_managers: OrderedDict[ClientSettings, TransactionManager] = OrderedDict()


def manager_for(settings: ClientSettings) -> TransactionManager:
    """The manager of this process for an installation, connected when first asked for. Do not close it."""
    spare_what_stays()
    with _lock:
        if settings not in _managers:
            _managers[settings] = TransactionManager.connect(settings)
        _managers.move_to_end(settings)
        while len(_managers) > MANAGERS_MAX:
            _managers.popitem(last=False)[1].close()
        return _managers[settings]


def close_managers() -> None:
    """Close this process's managers; the next ``manager_for`` connects again."""
    with _lock:
        while _managers:
            _managers.popitem()[1].close()


def _in_child() -> None:
    global _lock
    _lock = threading.Lock()  # it may have been held by a thread that closed a manager


atexit.register(close_managers)
os.register_at_fork(after_in_child=_in_child)
