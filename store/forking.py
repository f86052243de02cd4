"""What a forked child does about what its parent had open: ``multiprocessing``, ``gunicorn --preload``, ``os.fork``.

A child has copies of its parent's sockets, none of its threads, and every lock as it was: one that another thread held
is never released. So whoever holds connections, threads or a lock that is held while something is waited for registers
with ``leave_at_fork``, and lets go of them in the child. This is done at the fork itself, and not where a connection is
taken next: at that moment the child has one thread, so that two cannot find it out at once, no lock of the parent's has
to be taken to do so, the hot path compares nothing, and no finalizer comes first, which would hang up for the parent.
"""

from __future__ import annotations

import os
import weakref
from typing import Final, Protocol


class Leaving(Protocol):
    """Who holds what does not survive a fork."""

    def leave_to_parent(self) -> None:
        """In a forked child, before anything else runs there: let go of what is the parent's, in silence.

        What goes out over a socket, a farewell or a shutdown, would reach the parent's peer. Takes no lock that was
        there before the fork, waits for nothing, raises nothing.
        """
        ...


_leaving: Final[weakref.WeakSet[Leaving]] = weakref.WeakSet()


def leave_at_fork(holder: Leaving) -> None:
    """Have ``holder`` told in each child that is forked from now on, for as long as it lives. Thread-safe."""
    _leaving.add(holder)


def _in_child() -> None:
    for holder in list(_leaving):
        holder.leave_to_parent()


os.register_at_fork(after_in_child=_in_child)
