"""A lease that is held: how long, how it is renewed, and how it ends.

Invariant: ``is_held()`` never returns to true. Once it said false, to any thread, the tenure has ended for good, even
when an answer arrives a moment later that would have prolonged it: whoever saw false may already have told others.
While the coordinator cannot be reached the tenure lasts until its own monotonic deadline ends it; what a session
believes does not matter.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable

from lease.coordinator import Applied, Operation
from lease.errors import LeaseError, LevelRefused, RecordInvalid
from lease.gate import StoredLevel
from lease.records import EpochRecord, LeaseRecord
from lease.registry import Registry, StoredEpoch, StoredLease
from lease.rules import WRITES_PER_CALL_MAX, raised_ceiling, valid_until_ms

log = logging.getLogger(__name__)


class Tenure:
    """The right to serve, with the timestamps ``epoch <= timestamp < ceiling``. Made by ``Candidate.attempt``.

    ``is_held``, ``epoch`` and ``ceiling`` may be asked by any thread; ``renew`` and ``release`` wait for one another.
    """

    def __init__(
        self,
        registry: Registry,
        lease: StoredLease,
        epoch: StoredEpoch,
        level: StoredLevel,
        sent_ms: float,
        after_renewal: Callable[[], None],
    ) -> None:
        self._registry = registry
        self._lease = lease
        self._epoch = epoch
        self._level = level
        self._after_renewal = after_renewal
        self._valid_until_ms = valid_until_ms(sent_ms, registry.settings)
        self._unresolved_since_ms: float | None = None
        self._ended_ms: float | None = None
        self._ran_out = False
        self._state = threading.Lock()
        self._writing = threading.Lock()

    @property
    def epoch(self) -> int:
        """The first timestamp of the range; it names the epoch and is never handed out itself."""
        return self._epoch.record.epoch

    @property
    def ceiling(self) -> int:
        """The exclusive upper bound of the timestamps that may be handed out; only ever moves up."""
        return self._epoch.record.ceiling

    @property
    def record(self) -> LeaseRecord:
        """The lease record as this tenure asserts it."""
        return self._lease.record

    def is_held(self) -> bool:
        """Whether this process may serve, by its monotonic clock alone: no I/O. False is final."""
        with self._state:
            return self._ended_ms is None and self._registry.monotonic_ms() < self._valid_until_ms

    @property
    def ended_ms(self) -> float:
        """When it ended, or ends without another renewal, by the monotonic clock."""
        with self._state:
            return self._valid_until_ms if self._ended_ms is None else self._ended_ms

    @property
    def ran_out(self) -> bool:
        """Whether its time was over before it was released, or found to be another's. False where it is held."""
        with self._state:
            return self._ran_out

    def remaining_ms(self) -> float:
        """For how many milliseconds it holds without another renewal; 0: it has ended."""
        with self._state:
            if self._ended_ms is not None:
                return 0.0
            return max(0.0, self._valid_until_ms - self._registry.monotonic_ms())

    def renew(self, *, reached: int = 0, durable: int = 0) -> bool:
        """Re-assert the lease, and move the ceiling up when less than half of ``ceiling_ahead_ms`` is left.

        ``reached`` is the largest timestamp handed out so far, for when timestamps run ahead of the clock; ``durable``
        one at or below which every commit is recorded, written along with the ceiling. Blocks for
        a few ``request_timeout_ms`` at most. False: the lease is lost for good. True also when the coordinator did not
        answer but the last confirmed renewal still counts: call again at the next interval.
        """
        with self._writing:
            for _ in range(WRITES_PER_CALL_MAX):
                if not self.is_held():
                    return False
                if self._renew_once(reached, durable):
                    break
        if self.is_held():
            self._after_renewal()
        return self.is_held()

    def release(self) -> None:
        """Stop holding, then mark the record released so that a standby takes over at once.

        Where that cannot be written the standby waits out the lease instead: nothing is raised.
        """
        self._end()
        with self._writing:
            for _ in range(WRITES_PER_CALL_MAX):
                if self._release_once():
                    return

    def _end(self) -> None:
        with self._state:
            self._end_now()

    def _end_now(self) -> None:
        if self._ended_ms is None:
            now_ms = self._registry.monotonic_ms()
            self._ended_ms = min(now_ms, self._valid_until_ms)
            self._ran_out = now_ms >= self._valid_until_ms

    def _renew_once(self, reached: int, durable: int) -> bool:
        """Send the renewal; true when there is nothing more to try in this call."""
        sent_ms = self._registry.monotonic_ms()
        epoch = self._wanted_epoch(reached, durable)
        try:
            result = self._registry.commit(self._renewal(epoch))
            if isinstance(result, Applied):
                self._confirm(sent_ms, self._lease.version + 1, epoch)
                return True
            if self._unresolved_since_ms is None:
                self._unresolved_since_ms = sent_ms
            return self._resolve()
        except (RecordInvalid, LevelRefused):
            self._end()
            return True
        except LeaseError as error:
            log.warning("the lease is not renewed now: %s", str(error))
            return True

    def _wanted_epoch(self, reached: int, durable: int) -> StoredEpoch:
        record, now, floor = self._epoch.record, self._registry.now(), self._registry.floor
        wanted = raised_ceiling(record.ceiling, now, max(reached, record.epoch), self._registry.ahead)
        floor.keep_above(wanted or record.ceiling)
        ceiling = min(wanted or 0, floor.known)
        if ceiling <= record.ceiling:
            return self._epoch
        return StoredEpoch(EpochRecord(record.epoch, ceiling, max(durable, record.durable)), self._epoch.version + 1)

    def _renewal(self, epoch: StoredEpoch) -> list[Operation]:
        operations = self._put_lease(self._lease.record)
        if epoch is not self._epoch:
            operations.append(self._registry.put_epoch(epoch.record, self._epoch.version))
        return [*operations, self._registry.gate.unchanged(self._level)]

    def _put_lease(self, record: LeaseRecord) -> list[Operation]:
        return [self._registry.in_tenure(record.nonce), self._registry.put_lease(record, self._lease.version)]

    def _resolve(self) -> bool:
        """After a write that was not plainly applied: read what is stored, and compare the nonce.

        A rejection may come from our own earlier write that landed late, so it is read like an ambiguous end.
        """
        lease, epoch = self._registry.read_lease(), self._registry.read_epoch()
        if lease is None or not self._is_ours(lease.record) or epoch is None or epoch.record.epoch != self.epoch:
            self._end()
            return True
        if not self._registry.goes_on(self._lease.record.nonce):
            self._end()
            return True
        self._know_level(self._registry.gate.admitted())
        if lease.version < self._lease.version:
            self._end()  # of an older copy: others may have seen it before us, and their time runs
        elif lease.version > self._lease.version:
            # Which of the unresolved writes landed is not known: count from the earliest.
            assert self._unresolved_since_ms is not None
            self._confirm(self._unresolved_since_ms, lease.version, epoch)
        elif epoch.version != self._epoch.version:
            self._end()
        else:
            return False
        return True

    def _is_ours(self, record: LeaseRecord) -> bool:
        """Whether this tenure wrote it; an earlier write of it may say another level."""
        return dataclasses.replace(record, level=self._lease.record.level) == self._lease.record

    def _know_level(self, level: StoredLevel) -> None:
        """From now on the lease is written at this level, and says so."""
        self._level = level
        record = dataclasses.replace(self._lease.record, level=level.record.required)
        with self._state:
            self._lease = StoredLease(record, self._lease.version)

    def _confirm(self, sent_ms: float, lease_version: int, epoch: StoredEpoch) -> None:
        with self._state:
            # Nobody may have been told "not held" before the deadline moves: the clock is read under the same lock.
            if self._registry.monotonic_ms() >= self._valid_until_ms:
                self._end_now()
            self._valid_until_ms = max(self._valid_until_ms, valid_until_ms(sent_ms, self._registry.settings))
            self._lease = StoredLease(self._lease.record, lease_version)
            self._epoch = epoch
            self._unresolved_since_ms = None

    def _release_once(self) -> bool:
        released = dataclasses.replace(self._lease.record, released=True)
        try:
            result = self._registry.commit(self._put_lease(released))
            lease = None if isinstance(result, Applied) else self._registry.read_lease()
        except LeaseError:
            return True
        if lease is None or not self._is_ours(lease.record):
            return True
        self._lease = lease
        return False
