"""The whole installation as this process sees it: what the console shows, and the hand-over that it asks for.

However many pages are open, the oracles are asked once at a time and not more often than every ``FRESH_MS``. What
ZooKeeper does not tell just now is shown as it was told last, and the problem beside it.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from client import ClientSettings
from client.connection.credentials import credentials_of
from fleet import Handover, hand_over, observe
from lease import Coordinator, History, LeaseError, Member, members, read_history, wall_ms
from rest.installation import Look
from rest.shared import Shared

FRESH_MS = 400
TIMEOUT_MS = 1_000
"""For each question to ZooKeeper or to an oracle: who takes longer is shown as silent."""
MEMBERS_MAX = 32


class HandoverUnderWay(Exception):
    """Another hand-over that was asked for here has not ended."""


class Overview:
    """Belongs to one event loop. ``coordinator``: ``None`` where the oracle at ``own_address`` is alone.

    Oracles are asked in the name of this process, by the ``credentials`` of its ``settings``.
    """

    def __init__(self, coordinator: Coordinator | None, settings: ClientSettings, own_address: str) -> None:
        self._coordinator = coordinator
        self._credentials = credentials_of(settings)
        self.root = settings.root
        self.own_address = own_address
        self._members: tuple[Member, ...] = (Member("oracle", "standby", own_address),)
        self._history = History()
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="overview")
        self._looks = Shared(self._look, FRESH_MS)
        self._handing_over = False

    @property
    def elected(self) -> bool:
        """Whether there is a lease: else the oracle is alone."""
        return self._coordinator is not None

    async def look(self) -> Look:
        """The installation now, or ``FRESH_MS`` ago."""
        return await self._looks.get()

    async def hand_over(self, timeout_ms: int) -> Handover:
        """See ``fleet.hand_over``. Raises what it raises, and ``HandoverUnderWay``."""
        coordinator = self._coordinator
        assert coordinator is not None, "an oracle that is alone has nobody to hand over to"
        if self._handing_over:
            raise HandoverUnderWay
        self._handing_over = True
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads,
                lambda: hand_over(coordinator, self.root, timeout_ms=timeout_ms, credentials=self._credentials),
            )
        finally:
            self._handing_over = False

    def close(self) -> None:
        """Look no more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _look(self) -> Look:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._observe)

    def _observe(self) -> Look:
        problem = self._read_records()
        observed = observe(self._members, timeout_ms=TIMEOUT_MS, credentials=self._credentials)
        return Look(wall_ms(), int(time.monotonic() * 1000), tuple(observed), self._history, problem)

    def _read_records(self) -> tuple[str, ...]:
        if self._coordinator is None:
            return ()
        try:
            found = members(self._coordinator, self.root, timeout_ms=TIMEOUT_MS)
            self._members = tuple({(one.holder, one.address): one for one in found}.values())[:MEMBERS_MAX]
            self._history = read_history(self._coordinator, self.root, timeout_ms=TIMEOUT_MS)
        except LeaseError as error:
            return (f"ZooKeeper: {error}",)
        return ()
