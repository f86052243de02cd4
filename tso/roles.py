"""The thread that stands by, takes the lease over, keeps it, and gives it back.

It does all waiting on the coordinator, so that the event loop never does; the two meet only through `Front`. A process
is primary for as long as three things hold: the lease is renewed, the pipeline has not stopped by itself, and nobody
asked the process to stop or to hand over. Then serving ends *first* and the lease is given back after it: a standby
that takes over at once must find nobody serving. Each tenure gets a new pipeline, with no memory of the one before.

A tenure that ended by itself is followed by a pause: what ended it may end the next one as soon as it begins, such as a
commit table that can be read and refuses writes. Each takeover moves the timestamps ahead of the clock
(`lease.rules.next_epoch`), so takeovers in a row have to take time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import NamedTuple, Protocol

from lease import (
    Contender,
    Holding,
    LeaseError,
    LeaseRecord,
    LeaseSettings,
    MayNotServe,
    StandBy,
)
from store import StoreError

log = logging.getLogger(__name__)

WARM_RETRY_MS = 250
PAUSE_LEASES_MAX = 4
"""The longest pause after a tenure that ended by itself; the first is one lease, and each short tenure doubles it."""


class Progress(NamedTuple):
    """The largest timestamp handed out, and one below which every commit is durable; zeros when not serving."""

    reached: int = 0
    durable: int = 0
    silent_ms: float = 0.0
    """Since when the serving side has not come round to anything; 0 when not serving."""


class Front(Protocol):
    """What the roles do to the serving side. Called from the lease's thread; each call returns when it is done."""

    def stand_by(self, primary: LeaseRecord | None, seen_ms: float | None) -> None:
        """Tell clients where the primary is, as far as is known.

        ``seen_ms``: since when its lease stands as it does, by the monotonic clock; ``None``: not known.
        """
        ...

    def hindered(self, hindrance: str) -> None:
        """What keeps this process from becoming primary, for whoever asks; empty: nothing that is known."""
        ...

    def serve(self, tenure: Holding, ended: Callable[[str], None]) -> None:
        """Start serving as primary; call ``ended`` with the reason if that ends by itself."""
        ...

    def stop_serving(self) -> None:
        """Answer nothing more as primary."""
        ...

    def progress(self) -> Progress:
        """How far serving has come, for the epoch's record."""
        ...


class RoleKeeper:
    """Runs the roles of one process; `run` is the body of its thread."""

    def __init__(
        self,
        candidate: Contender,
        settings: LeaseSettings,
        front: Front,
        *,
        warm_up: Callable[[], None],
        find_primary: Callable[[], LeaseRecord | None],
    ) -> None:
        self._candidate = candidate
        self._settings = settings
        self._front = front
        self._warm_up = warm_up
        self._find_primary = find_primary
        self._stopping = threading.Event()
        self._tenure_ended = threading.Event()
        self._handing_over = threading.Lock()
        self._serving_epoch = 0
        self._pause_leases = 0
        self._why_ended = ""
        """Of the last tenure, where it ended by itself."""
        self._released: list[Callable[[], None]] = []

    def run(self) -> None:
        """Stand by and serve in turn until `stop`.

        Raises ``MayNotServe``, and what nobody expected, after serving has ended.
        """
        self._candidate.join("standby")
        warm = False
        while not self._stopping.is_set():
            warm = warm or self._is_warm()
            if not warm:
                self._candidate.join("standby")  # anew where its session ended, so that it is seen to run
                self._candidate.wait(WARM_RETRY_MS)
                continue
            answer = self._attempt()
            if isinstance(answer, StandBy):
                self._front.hindered("" if answer.problem is None else f"cannot try for the lease: {answer.problem}")
                self._front.stand_by(answer.primary, answer.seen_ms)
                self._candidate.wait(answer.wait_ms)
            else:
                lasted = self._hold(answer)
                warm = False  # it may have ended because the store does not answer: look before trying again
                self._stand_back(lasted)

    def stop(self) -> None:
        """From any thread: end serving, give the lease back, and return from `run`."""
        self._stopping.set()
        self._tenure_ended.set()
        self._candidate.wake()

    def step_aside(self, epoch: int, released: Callable[[], None]) -> None:
        """From any thread: end serving in ``epoch`` and give the lease back, call ``released``, leave it to another.

        Where that epoch has ended already, ``released`` is called at once.
        """
        with self._handing_over:
            if epoch == self._serving_epoch:
                self._released.append(released)
                self._tenure_ended.set()
                return
        released()

    def _stand_back(self, lasted: bool) -> None:
        """Let somebody else be faster; if nobody is, this process is a candidate again.

        ``lasted``: the tenure outlived a lease; those that do not are followed by longer and longer pauses.
        """
        with self._handing_over:
            self._serving_epoch = 0
            released, self._released = self._released, []
        for told in released:
            told()
        if released:
            self._stopping.wait(self._settings.renewal_interval_ms / 1000)
        else:
            self._pause_leases = 1 if lasted else min(max(1, 2 * self._pause_leases), PAUSE_LEASES_MAX)
            self._pause()

    def _pause(self) -> None:
        pause_ms = self._pause_leases * self._settings.lease_ms
        if self._why_ended:
            self._front.hindered(f"leaves the lease to others for {pause_ms} ms: it served, and {self._why_ended}")
        for _ in range(self._pause_leases):
            if self._stopping.is_set():
                return
            self._tell_primary()
            self._stopping.wait(self._settings.lease_ms / 1000)

    def _tell_primary(self) -> None:
        try:
            self._front.stand_by(self._find_primary(), None)
        except LeaseError as error:
            log.warning("the lease cannot be read: %s", str(error))

    def _is_warm(self) -> bool:
        """A process that cannot reach the commit table had better not become primary; it says who is."""
        self._tell_primary()
        try:
            self._warm_up()
        except StoreError as error:
            self._stay_standby(f"the commit table cannot be used: {error}")
            return False
        except MayNotServe:
            raise
        except LeaseError as error:
            self._stay_standby(f"the level cannot be read: {error}")
            return False
        return True

    def _stay_standby(self, hindrance: str) -> None:
        log.warning("stays standby while %s", hindrance)
        self._front.hindered(hindrance)

    def _attempt(self) -> Holding | StandBy:
        try:
            answer = self._candidate.attempt()
        except MayNotServe:
            raise
        except LeaseError as error:
            log.error("cannot try for the lease: %s", str(error))
            return StandBy(None, self._settings.lease_ms, str(error))
        if isinstance(answer, StandBy) and answer.problem is not None:
            log.warning("cannot try for the lease now: %s", answer.problem)  # ZooKeeper, or where the floor is: HBase
        return answer

    def _hold(self, tenure: Holding) -> bool:
        """Serve to the end of the tenure; whether that outlived a lease."""
        ended, self._why_ended = threading.Event(), ""
        self._tenure_ended = ended

        def end(reason: str) -> None:
            self._why_ended = reason
            ended.set()

        self._front.hindered("")
        if self._stopping.is_set():
            ended.set()
        log.info("epoch %d: primary, timestamps up to %d", tenure.epoch, tenure.ceiling)
        try:
            self._serving_epoch = tenure.epoch
            self._front.serve(tenure, end)
            self._candidate.join("primary")
            lasted = self._renew_until(ended, tenure)
        finally:
            try:
                self._front.stop_serving()
            finally:
                tenure.release()
        log.info("epoch %d: no longer primary", tenure.epoch)
        self._candidate.join("standby")
        return lasted

    def _renew_until(self, ended: threading.Event, tenure: Holding) -> bool:
        """Keep the lease; whether it was kept for as long as one lasts.

        A front that hangs would keep it from those who could serve, and cannot be stopped: it is left to run out.
        """
        intervals = 0
        while not ended.wait(self._settings.renewal_interval_ms / 1000):
            intervals += 1
            progress = self._front.progress()
            if progress.silent_ms > self._settings.lease_ms:
                self._why_ended = f"its event loop had not run for {progress.silent_ms:.0f} ms"
                log.error("epoch %d: the lease is left to others: %s", tenure.epoch, self._why_ended)
                break
            if not tenure.renew(reached=progress.reached, durable=progress.durable):
                self._why_ended = "the lease is lost"
                log.error("epoch %d: %s", tenure.epoch, self._why_ended)
                break
        return intervals >= self._settings.renewals_per_lease
