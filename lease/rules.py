"""When a lease is valid, when a standby may take over, and which timestamps the new epoch owns.

Pure decisions over values; nothing here knows a clock, a socket or ZooKeeper. Invariant, with monotonic clocks whose
rates differ by less than ``safety_margin_ms`` in ``lease_ms``: at no moment do two holders both believe that they hold.
A holder counts from *before* its successful write was sent; a standby counts from *after* it first saw that write's
version, and for longer. Wall clocks only ever push timestamps up. The line is Gray and Cheriton's leases (1989), with
Omid's "base taken before the write"; unlike Omid, on monotonic clocks.

Monotonic times are in milliseconds (``float``); timestamps are 64-bit integers, spans of timestamps are differences.
"""

from __future__ import annotations

from dataclasses import dataclass

from lease.errors import InvalidLeaseSettings
from lease.records import LEASE_MS_MAX, LEASE_MS_MIN, EpochRecord, LeaseRecord

RENEWALS_PER_LEASE_MAX = 20
WRITES_PER_CALL_MAX = 3
"""How often one call that renews or releases sends its write; again only where a read showed nothing landed."""
SAFETY_MARGIN_SHARE_MIN = 0.01
"""The least margin, as a share of the lease: crystals drift by 0.02 %, slewed or virtual clocks by up to 0.5 %."""
CEILING_AHEAD_MS_MAX = 3_600_000
FLOOR_AHEAD_MS_MIN = 60_000
"""The floor is put about twice in so long, and a new epoch begins about so far ahead of the clock where it has to."""
CLOCKS_APART_MS_MAX = 300_000
"""What timestamps are ahead of a clock beyond what takeovers and a loss of records account for, before it is told."""
_DERIVED = 0


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """How long a lease lasts, and what follows from it. All in milliseconds; 0 means "derived from ``lease_ms``".

    ``safety_margin_ms``: how much earlier than ``lease_ms`` the holder stops (0: an eighth of the lease).
    ``request_timeout_ms``: the longest wait for one answer of the coordinator (0: a quarter of the lease).
    ``ceiling_ahead_ms``: how far the ceiling of timestamps is put ahead of the clock (0: two leases).

    Raises ``InvalidLeaseSettings`` with the reason.
    """

    lease_ms: int = 2000
    renewals_per_lease: int = 4
    safety_margin_ms: int = _DERIVED
    request_timeout_ms: int = _DERIVED
    ceiling_ahead_ms: int = _DERIVED

    def __post_init__(self) -> None:
        _check_integers(self)
        self._derive("safety_margin_ms", self.lease_ms // 8)
        self._derive("request_timeout_ms", self.lease_ms // 4)
        self._derive("ceiling_ahead_ms", 2 * self.lease_ms)
        _check_lease(self)
        _check_renewal(self)
        _check_ceiling(self)

    def _derive(self, name: str, value: int) -> None:
        if getattr(self, name) == _DERIVED:
            object.__setattr__(self, name, value)

    @property
    def validity_ms(self) -> int:
        """How long after *before the write was sent* the holder may believe in it."""
        return self.lease_ms - self.safety_margin_ms

    @property
    def floor_ahead_ms(self) -> int:
        """How far above the ceiling the floor is put: moved up, that stays below it, however long a lease."""
        return max(FLOOR_AHEAD_MS_MIN, 2 * self.ceiling_ahead_ms)

    @property
    def ahead_of_clock_ms_max(self) -> int:
        """How far beyond a clock the ceiling on record may lie without a clock that is, or was, wrong."""
        return self.ceiling_ahead_ms + self.floor_ahead_ms + CLOCKS_APART_MS_MAX

    @property
    def renewal_interval_ms(self) -> float:
        """How often the holder re-asserts its lease."""
        return self.lease_ms / self.renewals_per_lease


@dataclass(frozen=True, slots=True)
class Sighting:
    """Which write of the lease a standby looks at (``None``: an absent lease), and since when, by its own clock."""

    version: int | None
    nonce: str | None
    since_ms: float


def sighted(previous: Sighting | None, version: int | None, nonce: str | None, now_ms: float) -> Sighting:
    """The sighting after a read. ``now_ms`` must have been taken *after* the answer came.

    Taken before, it could lie before the holder's write, and the standby would be early.
    """
    if previous is not None and (previous.version, previous.nonce) == (version, nonce):
        return previous
    return Sighting(version, nonce, now_ms)


def takeover_wait_ms(record: LeaseRecord, sighting: Sighting, now_ms: float) -> float:
    """How long a standby must still leave ``record`` alone; 0: it may take over now.

    A released lease is free at once; any other when the same version was seen for the *holder's* full lease.
    """
    if record.released:
        return 0.0
    return _remaining_ms(sighting, record.lease_ms, now_ms)


def absence_wait_ms(epoch: EpochRecord | None, sighting: Sighting, lease_ms: int, now_ms: float) -> float:
    """The same where there is no lease record at all.

    Without an epoch record either nobody ever served: free at once. Otherwise somebody removed the lease by hand, maybe
    from under a living primary that has not yet noticed: wait as if it had just been renewed. ``lease_ms``: the longest
    lease that a standby knows of, of those whose records it saw and its own. One that saw none has only its own to go
    by: where the holder's is longer, nothing but the operator keeps the two apart.
    """
    if epoch is None:
        return 0.0
    return _remaining_ms(sighting, lease_ms, now_ms)


def has_lost_records(epoch: EpochRecord | None, floor: int, span: int) -> bool:
    """Whether the coordinator has lost what it had: it has no epoch on record, or one from long ago.

    ``floor``: the one on record, and the ceiling on record lies at most ``span`` below it. Further below only between
    the writes of the two, after a step of the clock or a long time without a primary: where that primary dies in
    between, the next one waits a lease for nothing and begins further ahead of the clock than it had to.
    A copy of the epoch record since which ceilings went up by less than ``span`` may not be told from the last one.
    """
    return epoch is None or floor - epoch.ceiling > span


def is_ahead_of_clock(epoch: EpochRecord | None, now: int, span: int) -> bool:
    """Whether timestamps have followed a clock that is, or was, wrong: this one is slow, or a primary's was fast.

    Nothing is decided by it. Timestamps never go back: until the clocks have come so far, what is read as of a time
    misses what was committed since, and somebody should know. ``span``: of ``ahead_of_clock_ms_max``.
    """
    return epoch is not None and epoch.ceiling - now > span


def loss_wait_ms(sighting: Sighting, lease_ms: int, now_ms: float) -> float:
    """How long to wait where records were lost: whoever served may not have noticed, and hold for a whole lease yet.

    Whatever the lease says, since it may be a copy, too. ``lease_ms``: as of ``absence_wait_ms``, and of the floor.
    """
    return _remaining_ms(sighting, lease_ms, now_ms)


def _remaining_ms(sighting: Sighting, lease_ms: int, now_ms: float) -> float:
    return max(0.0, sighting.since_ms + lease_ms - now_ms)


def valid_until_ms(sent_ms: float, settings: LeaseSettings) -> float:
    """Until when (exclusive) the holder may believe in a write; ``sent_ms`` was taken *before* the write was sent."""
    return sent_ms + settings.validity_ms


def next_epoch(old: EpochRecord | None, now: int, ahead: int) -> EpochRecord:
    """The range of a new tenure: above all that any earlier tenure could have handed out, whatever the clock says.

    ``now`` is the wall clock's timestamp, ``ahead`` the span of ``ceiling_ahead_ms``. Raises ``RecordInvalid`` when the
    clock lies so far in the future that no timestamp fits.
    """
    epoch = max(1 if old is None else old.ceiling, now)
    return EpochRecord(epoch, _ceiling_above(now, epoch, ahead), durable=epoch)


def epoch_after_loss(floor: int, now: int, ahead: int) -> EpochRecord:
    """The same where the old record is lost, and ``floor`` is on record.

    Above the floor by no more than the clock is, even where that leaves room for no timestamp before the ceiling is
    moved: a takeover puts the floor above its ceiling first, whatever comes of it, and the next try begins there. As
    long as none of them is taken, timestamps would run away from the clock.
    """
    epoch = max(floor, now)
    return EpochRecord(epoch, max(now + ahead, epoch + 1), durable=epoch)


def raised_ceiling(ceiling: int, now: int, reached: int, ahead: int) -> int | None:
    """The ceiling to move up to, or ``None`` while half of ``ahead`` is left above the clock and above ``reached``.

    ``reached`` is the largest timestamp in use. Half of ``ahead`` is at least one lease (``LeaseSettings`` sees to it),
    so the range outlasts the lease when no renewal gets through.
    """
    if ceiling - max(now, reached) >= ahead // 2:
        return None
    return _ceiling_above(now, reached, ahead)


def raised_floor(floor: int, ceiling: int, ahead: int) -> int | None:
    """The floor to be put on record, or ``None`` while half of ``ahead`` is left between it and ``ceiling``."""
    return None if floor - ceiling >= ahead // 2 else ceiling + ahead


def _ceiling_above(now: int, reached: int, ahead: int) -> int:
    # Above the clock by all of `ahead`, but above timestamps that already run ahead of the clock by half of it only:
    # so a row of failovers, each starting at the last ceiling, does not run further and further ahead of the clock, as
    # long as half of `ahead` passes from one to the next. By default that is a lease, which a standby waits after a
    # crash, and a process before it tries again after a tenure that ended by itself (`tso.roles`).
    return max(now + ahead, reached + ahead // 2)


def _check_integers(settings: LeaseSettings) -> None:
    for name in LeaseSettings.__slots__:
        value = getattr(settings, name)
        if type(value) is not int or value < 0:
            raise InvalidLeaseSettings(f"{name} is a whole number of at least 0, not {value!r}")


def _check_lease(settings: LeaseSettings) -> None:
    lease_ms, margin_ms = settings.lease_ms, settings.safety_margin_ms
    if not LEASE_MS_MIN <= lease_ms <= LEASE_MS_MAX:
        raise InvalidLeaseSettings(
            f"lease_ms lies in {LEASE_MS_MIN}…{LEASE_MS_MAX}, not {lease_ms}: an ordinary pause of a process outlives a"
            " shorter one, and after a crash nobody serves for as long as it lasts"
        )
    if margin_ms < lease_ms * SAFETY_MARGIN_SHARE_MIN:
        raise InvalidLeaseSettings(
            f"safety_margin_ms {margin_ms} is less than {SAFETY_MARGIN_SHARE_MIN:.0%} of lease_ms {lease_ms}: it would"
            " not cover two clocks that run at different rates"
        )


def _check_renewal(settings: LeaseSettings) -> None:
    if not 2 <= settings.renewals_per_lease <= RENEWALS_PER_LEASE_MAX:
        raise InvalidLeaseSettings(
            f"renewals_per_lease lies in 2…{RENEWALS_PER_LEASE_MAX}, not {settings.renewals_per_lease}"
        )
    needed_ms = settings.renewal_interval_ms + settings.request_timeout_ms
    if needed_ms > settings.validity_ms:
        raise InvalidLeaseSettings(
            f"a renewal starts after {settings.renewal_interval_ms:g} ms and may take {settings.request_timeout_ms} ms,"
            f" but the lease is only valid for {settings.validity_ms} ms (lease_ms {settings.lease_ms} less"
            f" safety_margin_ms {settings.safety_margin_ms}): raise lease_ms, or lower request_timeout_ms"
        )


def _check_ceiling(settings: LeaseSettings) -> None:
    ahead_ms, lease_ms = settings.ceiling_ahead_ms, settings.lease_ms
    if not 2 * lease_ms <= ahead_ms <= CEILING_AHEAD_MS_MAX:
        raise InvalidLeaseSettings(
            f"ceiling_ahead_ms lies in {2 * lease_ms} (two leases) … {CEILING_AHEAD_MS_MAX}, not {ahead_ms}: with less"
            " the timestamps could run out while the lease is held, with more they would run hours ahead of the clock"
        )
