"""A process that wants to serve: it watches the lease, and takes it over when the rules allow.

A thin driver: what to do is decided in ``lease.rules``; here are the reads, the one write, and the memory between them.
Invariant: taking over is *one* multi that compares and sets both the lease and the epoch record, at a level that this
process was admitted to. A write whose end was ambiguous stays a *claim*: it is looked for, by its nonce, in everything
that is read later, because it may yet land.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence

from lease.coordinator import Applied, Coordinator
from lease.election import StandBy
from lease.errors import CoordinatorUnavailable, RecordInvalid, StillHeld
from lease.floor import Floor, FloorKeeper, FloorRecord
from lease.gate import Gate, StoredLevel
from lease.history import Cause, Succession, succession
from lease.membership import Membership
from lease.paths import ZnodePaths
from lease.records import LeaseRecord, Member, check_addresses, check_name
from lease.registry import Registry, StoredEpoch, StoredLease, version_after
from lease.rules import (
    LeaseSettings,
    Sighting,
    absence_wait_ms,
    epoch_after_loss,
    has_lost_records,
    is_ahead_of_clock,
    loss_wait_ms,
    next_epoch,
    sighted,
    takeover_wait_ms,
    valid_until_ms,
)
from lease.tenure import Tenure
from versions import LevelRange, spoken

log = logging.getLogger(__name__)

CLAIMS_MAX = 8
"""Ambiguous takeovers that are remembered; one forgotten too early costs a wait of one lease, nothing more."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Claim:
    """A takeover that was sent at ``sent_ms`` and may have landed, with the versions that it leaves behind if so.

    ``lost``: the floor above which its epoch begins, where the record of the one before was found to be lost.
    """

    lease: StoredLease
    epoch: StoredEpoch
    replaces: int | None
    level: StoredLevel
    sent_ms: float
    succession: Succession
    lost: FloorRecord | None


class Candidate:
    """One process's part in the election. ``attempt`` and ``join`` belong to one thread; ``wake`` to any.

    ``floor``: of the installation's timestamps, kept with its data. ``first_level`` is asked where the installation has
    no level on record, and may raise ``CoordinatorUnavailable``. ``monotonic_ms`` must never be stepped
    (``lease.monotonic_ms``); ``wall_ms`` are milliseconds since 1970, which ``timestamp_of_ms`` turns into a timestamp
    (and a span of milliseconds into a span of timestamps); ``new_nonce`` gives a text never given before, such as
    ``uuid.uuid4().hex``. Raises ``RecordInvalid`` for a holder name or an address that could not be stored.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        settings: LeaseSettings,
        holder: str,
        addresses: Sequence[str],
        *,
        monotonic_ms: Callable[[], float],
        wall_ms: Callable[[], int],
        timestamp_of_ms: Callable[[int], int],
        new_nonce: Callable[[], str],
        root: str,
        floor: Floor,
        levels: LevelRange | None = None,
        first_level: Callable[[], int] | None = None,
    ) -> None:
        check_name("holder", holder)
        check_addresses(tuple(addresses))
        self._levels = levels or spoken()
        self._registry = Registry(
            coordinator=coordinator,
            paths=ZnodePaths(root),
            settings=settings,
            monotonic_ms=monotonic_ms,
            now=lambda: timestamp_of_ms(wall_ms()),
            ahead=timestamp_of_ms(settings.ceiling_ahead_ms),
            gate=Gate(
                coordinator,
                ZnodePaths(root),
                settings.request_timeout_ms,
                self._levels,
                first_level or (lambda: self._levels.highest),
            ),
            floor=FloorKeeper(
                floor,
                settings.lease_ms,
                ahead=timestamp_of_ms(settings.floor_ahead_ms),
                step=timestamp_of_ms(settings.ceiling_ahead_ms),
            ),
        )
        self._holder = holder
        self._addresses = tuple(addresses)
        self._new_nonce = new_nonce
        self._membership = Membership(self._registry.gate)
        self._changed = threading.Event()
        self._sighting: Sighting | None = None
        self._session_id: int | None = None
        self._longest_lease_ms = settings.lease_ms
        self._ahead_of_clock_max = timestamp_of_ms(settings.ahead_of_clock_ms_max)
        self._is_ahead_of_clock = False
        self._saw_it_happen = False
        self._claims: deque[_Claim] = deque(maxlen=CLAIMS_MAX)
        self._tenure: Tenure | None = None
        self._succession: Succession | None = None

    @property
    def succession(self) -> Succession | None:
        """How the last tenure came about; ``None`` before the first."""
        return self._succession

    def join(self, role: str) -> None:
        """Show this process under ``members/`` in ``role``; call again to change it. Outlives a lost session.

        Raises ``LevelRefused`` where the installation is at a level that this process does not work at.
        """
        self._membership.join(Member(self._holder, role, self._addresses[0], self._levels))

    def attempt(self) -> Tenure | StandBy:
        """Take the lease if the rules allow it now. Blocks for a few ``request_timeout_ms`` at most.

        Raises ``RecordInvalid`` when a stored record is not understood, ``CoordinatorRefused``, ``LevelRefused``, and
        ``StillHeld`` while the tenure that this candidate gave out last is still held.
        """
        if self._tenure is not None and self._tenure.is_held():
            raise StillHeld("this candidate's last tenure is still held: release it before trying for another")
        self._membership.refresh()
        try:
            return self._attempt()
        except CoordinatorUnavailable as error:
            return StandBy(None, self._registry.settings.renewal_interval_ms, str(error))

    def wait(self, wait_ms: float) -> None:
        """Wait ``wait_ms``; return early when the lease changes after the last attempt's read, or on ``wake``."""
        self._changed.wait(wait_ms / 1000)
        self._changed.clear()

    def wake(self) -> None:
        """Make ``wait`` return, now or when it is next called."""
        self._changed.set()

    def _attempt(self) -> Tenure | StandBy:
        level = self._registry.gate.admitted()
        lease = self._read_lease()
        adopted = self._adopt(lease)
        if adopted is not None:
            return adopted
        epoch = self._registry.read_epoch()
        self._compare_clocks(epoch)
        standby = self._stand_by(lease, epoch)
        if standby.wait_ms > 0:
            return standby
        floor = self._registry.floor.read(founding=lease is None and epoch is None)
        if lease is not None and epoch is None and floor is None:
            raise RecordInvalid(
                f"{self._registry.paths.epoch} is missing though {self._registry.paths.lease} exists, and the data do"
                " not know how far timestamps went: write an epoch record with a ceiling above every timestamp in use,"
                " or remove the lease too, and the next epoch begins at the present time"
            )
        lost = self._lost(epoch, floor)
        if lost is not None:
            standby = self._stand_by_after_loss(lost)
        return self._take_over(lease, epoch, level, lost) if standby.wait_ms <= 0 else standby

    def _read_lease(self) -> StoredLease | None:
        lease = self._registry.read_lease(self._changed)
        now_ms = self._registry.monotonic_ms()
        version, nonce = (None, None) if lease is None else (lease.version, lease.record.nonce)
        before = self._sighting if self._is_same_session() else None
        self._sighting = sighted(before, version, nonce, now_ms)
        if before is not self._sighting:  # of a lease that was seen before, the latest write is a renewal, or a release
            self._saw_it_happen = before is not None and nonce is not None and before.nonce == nonce
        if lease is not None:
            self._longest_lease_ms = max(self._longest_lease_ms, lease.record.lease_ms)
        return lease

    def _is_same_session(self) -> bool:
        """Whether the coordinator that was read is known to be the one of the last sighting.

        One that lost its data knows no session of before: the same version may then be another lease's.
        """
        before, self._session_id = self._session_id, self._registry.coordinator.session_id()
        return before is not None and before == self._session_id

    def _stand_by(self, lease: StoredLease | None, epoch: StoredEpoch | None) -> StandBy:
        assert self._sighting is not None
        now_ms = self._registry.monotonic_ms()
        if lease is None:
            record = None if epoch is None else epoch.record
            return StandBy(None, absence_wait_ms(record, self._sighting, self._longest_lease_ms, now_ms))
        if self._is_abandoned(lease):
            return StandBy(None, 0.0)
        primary = None if lease.record.released else lease.record
        wait_ms = takeover_wait_ms(lease.record, self._sighting, now_ms)
        return StandBy(primary, wait_ms, seen_ms=self._sighting.since_ms)

    def _compare_clocks(self, epoch: StoredEpoch | None) -> None:
        """Tell once of timestamps that have run far ahead of this machine's clock."""
        record = None if epoch is None else epoch.record
        ahead = is_ahead_of_clock(record, self._registry.now(), self._ahead_of_clock_max)
        if ahead and not self._is_ahead_of_clock and record is not None:
            log.warning(
                "timestamps up to %d are on record, far ahead of this machine's clock: it is slow, or that of a primary"
                " was fast. Until clocks have come so far, what is read as of a time misses what is committed now",
                record.ceiling,
            )
        self._is_ahead_of_clock = ahead

    def _lost(self, epoch: StoredEpoch | None, floor: FloorRecord | None) -> FloorRecord | None:
        """The floor, where the coordinator has lost what was on record."""
        if floor is None:
            return None
        record = None if epoch is None else epoch.record
        return floor if has_lost_records(record, floor.timestamp, floor.span) else None

    def _stand_by_after_loss(self, floor: FloorRecord) -> StandBy:
        assert self._sighting is not None
        lease_ms = max(self._longest_lease_ms, floor.lease_ms)
        return StandBy(None, loss_wait_ms(self._sighting, lease_ms, self._registry.monotonic_ms()))

    def _is_abandoned(self, lease: StoredLease) -> bool:
        """Whether the lease is our own and yet nobody's: a tenure that has ended, or a claim that lapsed unused."""
        ended = self._tenure is not None and self._tenure.record.nonce == lease.record.nonce
        return ended or self._claim_of(lease) is not None

    def _claim_of(self, lease: StoredLease | None) -> _Claim | None:
        return next((claim for claim in self._claims if claim.lease == lease), None)

    def _take_over(
        self, lease: StoredLease | None, epoch: StoredEpoch | None, level: StoredLevel, lost: FloorRecord | None
    ) -> Tenure | StandBy:
        """``lost``: the floor, where the record of the epoch is lost."""
        registry, seen = self._registry, self._sighting
        begun = registry.begun_tenures()
        now_stored = self._read_lease()
        if self._sighting is not seen:  # what has begun may be the tenure of whoever took the lease meanwhile
            return self._after_failed_takeover(now_stored)
        claim = self._new_claim(lease, epoch, level, lost)
        self._claims.append(claim)
        result = registry.commit(
            [
                *registry.begin_tenure(claim.lease.record.nonce, begun),
                registry.put_lease(claim.lease.record, None if lease is None else lease.version),
                registry.put_epoch(claim.epoch.record, None if epoch is None else epoch.version),
                registry.gate.unchanged(level),
            ]
        )
        # Rejected may mean that an earlier claim of ours landed late, so look for the nonces then, too.
        now_stored = claim.lease if isinstance(result, Applied) else self._read_lease()
        return self._adopt(now_stored) or self._after_failed_takeover(now_stored)

    def _after_failed_takeover(self, lease: StoredLease | None) -> StandBy:
        interval_ms = self._registry.settings.renewal_interval_ms
        if lease is None or self._is_abandoned(lease):
            return StandBy(None, interval_ms)
        standby = self._stand_by(lease, None)
        return dataclasses.replace(standby, wait_ms=max(standby.wait_ms, interval_ms))

    def _new_claim(
        self, lease: StoredLease | None, epoch: StoredEpoch | None, level: StoredLevel, lost: FloorRecord | None
    ) -> _Claim:
        old = None if epoch is None else epoch.record
        now, ahead = self._registry.now(), self._registry.ahead
        record = next_epoch(old, now, ahead) if lost is None else epoch_after_loss(lost.timestamp, now, ahead)
        self._registry.floor.require(record.ceiling)
        sent_ms = self._registry.monotonic_ms()
        return _Claim(
            lease=StoredLease(
                self._record(record.epoch, level), version_after(None if lease is None else lease.version)
            ),
            epoch=StoredEpoch(record, version_after(None if epoch is None else epoch.version)),
            replaces=None if lease is None else lease.version,
            level=level,
            sent_ms=sent_ms,
            succession=self._succession_to(None if lease is None else lease.record, first=old is None and lost is None),
            lost=lost,
        )

    def _succession_to(self, replaced: LeaseRecord | None, *, first: bool) -> Succession:
        assert self._sighting is not None
        came = succession(replaced, first, self._holder, self._sighting.since_ms, self._saw_it_happen)
        if self._tenure is None or replaced is None or replaced.nonce != self._tenure.record.nonce:
            return came
        # One that slept for longer than its lease releases it all the same, when it wakes.
        cause: Cause = "lease ran out" if self._tenure.ran_out else came.cause
        return Succession(cause, self._tenure.ended_ms, seen=True)

    def _record(self, epoch: int, level: StoredLevel) -> LeaseRecord:
        return LeaseRecord(
            holder=self._holder,
            nonce=self._new_nonce(),
            addresses=self._addresses,
            epoch=epoch,
            released=False,
            lease_ms=self._registry.settings.lease_ms,
            level=level.record.required,
        )

    def _adopt(self, lease: StoredLease | None) -> Tenure | None:
        """The tenure, when what is stored is a claim of ours that landed and is still valid. Forgets dead claims."""
        claim = self._claim_of(lease)
        version = None if lease is None else lease.version
        self._claims = deque((c for c in self._claims if c.replaces == version or c is claim), CLAIMS_MAX)
        if claim is None or self._registry.monotonic_ms() >= valid_until_ms(claim.sent_ms, self._registry.settings):
            return None
        self._claims.clear()
        if claim.lost is not None:  # not before: what looks lost may be the floor of one who was faster
            floor = claim.lost.timestamp
            log.warning("the coordinator has lost its records: a new epoch begins, above timestamp %d", floor)
            self._registry.floor.keep_above(claim.epoch.record.ceiling)  # for the first renewal to move the ceiling
        self._succession = claim.succession
        self._tenure = Tenure(
            self._registry, claim.lease, claim.epoch, claim.level, claim.sent_ms, self._membership.refresh
        )
        return self._tenure
