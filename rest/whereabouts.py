"""Whether the primary is beside this process, and if not, where its REST is.

What it says is a hint, as the lease is: who asks the wrong process is told of another, and the oracles decide.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import Protocol

from lease import Coordinator, LeaseError, LeaseRecord, PrimaryFinder

_log = logging.getLogger(__name__)

READ_TIMEOUT_MS = 2_000
LOOK_AGAIN_MS = 500
"""After a look that failed; a change of the lease is noticed at once."""


@dataclass(frozen=True, slots=True)
class Place:
    """``here``: the primary is the oracle beside this process. ``rest``: its REST address, ``""``: not known."""

    here: bool
    holder: str = ""
    rest: str = ""


class Whereabouts(Protocol):
    """Who knows it."""

    def now(self) -> Place | None:
        """As last seen; ``None``: there is no primary, or none was seen yet. Waits for nothing."""
        ...


def place_in(record: LeaseRecord | None, own_address: str) -> Place | None:
    """What a lease record says to the process beside the oracle at ``own_address``."""
    if record is None:
        return None
    return Place(record.addresses[0] == own_address, record.holder, record.rest_address or "")


class AlwaysHere:
    """Of an oracle that is alone: there is no other primary."""

    def now(self) -> Place | None:
        """See ``Whereabouts``."""
        return Place(here=True)


class LeaseWatch:
    """Reads the lease whenever it changes, in a thread of its own. A failed look leaves what was seen before."""

    def __init__(self, coordinator: Coordinator, root: str, own_address: str) -> None:
        self._finder = PrimaryFinder(coordinator, root, timeout_ms=READ_TIMEOUT_MS)
        self._own_address = own_address
        self._seen: Place | None = None
        self._changed = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rest-lease", daemon=True)
        self._thread.start()

    def now(self) -> Place | None:
        """See ``Whereabouts``."""
        return self._seen

    def close(self) -> None:
        """Look no more."""
        self._closed.set()
        self._changed.set()
        self._thread.join(READ_TIMEOUT_MS / 1000)

    def _run(self) -> None:
        while True:
            self._changed.clear()
            if self._closed.is_set():  # looked at after the clearing: `close` sets both, this one first
                return
            try:
                self._seen = place_in(self._finder.current(self._changed), self._own_address)
            except LeaseError as error:
                _log.warning("where the primary is cannot be read now: %s", str(error))
                self._closed.wait(LOOK_AGAIN_MS / 1000)
            else:
                self._changed.wait()
