"""One oracle alone, without ZooKeeper: a lease that is always held, and an epoch record in the cell store.

For those who need no failover, and to measure what the lease costs. The rules of epochs and ceilings are the same as
with a lease: the record holds the ceiling, moved up by compare-and-set, and each start takes a new epoch above it.

What is missing is said plainly: nothing ends the right to serve of a process that is paused or cut off. A second
process that is started beside the first takes a newer epoch, and the first one learns of it at its next renewal only;
until then both answer. So there must never be two. ``pythia tso serve --alone`` looks whether the last one still
answers before it begins, and that is all the protection there is.

The invariant: whoever learns of another that was started after it ends, and takes nothing back. Two that took turns
would both answer for a while at each of them.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass

from lease.election import StandBy
from lease.errors import CoordinatorUnavailable, LeaseError, RecordInvalid, Superseded
from lease.records import EpochRecord, check_addresses
from lease.rules import WRITES_PER_CALL_MAX, LeaseSettings, next_epoch, raised_ceiling
from store import CellStore, Family, StoreError
from store.making import create_missing
from versions.formats import SOLO_RECORDS

ROW = b"epoch"
RECORD = b"e:record"
_FAMILY = Family("e", versions_max=1)


@dataclass(frozen=True, slots=True)
class SoloRecord:
    """The range of timestamps of the last start, who it was (``nonce``), and where it answers."""

    epoch: EpochRecord
    nonce: str
    address: str

    def encode(self) -> bytes:
        """The record as it is stored."""
        epoch = self.epoch.encode().decode()
        fields = {"format": SOLO_RECORDS.newest, "epoch": epoch, "nonce": self.nonce, "address": self.address}
        return json.dumps(fields, sort_keys=True).encode()

    @classmethod
    def parse(cls, data: bytes) -> SoloRecord:
        """The record from stored bytes. Raises ``RecordInvalid``."""
        try:
            fields = json.loads(data)
            SOLO_RECORDS.require_known(fields["format"])
            record = cls(EpochRecord.parse(fields["epoch"].encode()), fields["nonce"], fields["address"])
            check_addresses((record.address,))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RecordInvalid(f"the stored epoch record cannot be used: {error}: {data[:80]!r}") from None
        return record


class SoloRegistry:
    """The record of one installation, in a table of its own. The store's errors come as ``CoordinatorUnavailable``."""

    def __init__(self, store: CellStore, table: str) -> None:
        self._store = store
        self._table = table

    def create(self) -> None:
        """Make the table unless it is there."""
        try:
            create_missing(self._store, self._table, [_FAMILY])
        except StoreError as error:
            raise CoordinatorUnavailable(str(error)) from error

    def read(self) -> SoloRecord | None:
        """The record; ``None`` before the first start."""
        try:
            if self._table not in self._store.table_names():
                return None
            cell = self._store.get(self._table, ROW, [RECORD]).get(RECORD)
        except StoreError as error:
            raise CoordinatorUnavailable(str(error)) from error
        return None if cell is None else SoloRecord.parse(cell.value)

    def replace(self, old: SoloRecord | None, new: SoloRecord) -> None:
        """Put ``new`` in place of ``old``. Whether it stands has to be read, whatever the answer: the store dates the
        cell by its own clock, and what a clock that was stepped back wrote lies below what was there.
        """
        expected = None if old is None else old.encode()
        try:
            self._store.compare_and_set(
                self._table, ROW, check=RECORD, expected=expected, put=RECORD, value=new.encode()
            )
        except StoreError as error:
            raise CoordinatorUnavailable(str(error)) from error


class SoloCandidate:
    """The ``Contender`` that has no rivals: its attempt succeeds as soon as the store answers."""

    def __init__(
        self,
        registry: SoloRegistry,
        settings: LeaseSettings,
        address: str,
        *,
        wall_ms: Callable[[], int],
        timestamp_of_ms: Callable[[int], int],
        nonce: str,
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._address = address
        self._wall_ms = wall_ms
        self._timestamp_of_ms = timestamp_of_ms
        self._ahead = timestamp_of_ms(settings.ceiling_ahead_ms)
        self._nonce = nonce
        self._nonce_before: str | None = None
        """Of what stood when this process first looked: of one that had ended; "" where nothing did."""
        self._changed = threading.Event()

    def _now(self) -> int:
        return self._timestamp_of_ms(self._wall_ms())

    def join(self, role: str) -> None:
        """There is nobody to show it to."""

    def attempt(self) -> SoloTenure | StandBy:
        """Take a new epoch above the last one. Raises ``RecordInvalid``, ``Superseded``."""
        try:
            self._registry.create()
            old = self._registry.read()
            self._require_first(old)
            epoch = next_epoch(None if old is None else old.epoch, self._now(), self._ahead)
            record = SoloRecord(epoch, self._nonce, self._address)
            self._registry.replace(old, record)
            if self._registry.read() == record:
                return SoloTenure(self._registry, record, now=self._now, ahead=self._ahead)
        except CoordinatorUnavailable as error:
            return StandBy(None, self._settings.renewal_interval_ms, str(error))
        return StandBy(None, self._settings.renewal_interval_ms, "its record does not stand")

    def _require_first(self, stored: SoloRecord | None) -> None:
        """Raise ``Superseded`` where another process has begun since this one first looked."""
        nonce = "" if stored is None else stored.nonce
        if self._nonce_before is None:
            self._nonce_before = nonce
        if stored is not None and nonce not in (self._nonce_before, self._nonce):
            raise Superseded(
                f"another oracle was started to serve alone, beside this one: it is at {stored.address}, and this one "
                "ends"
            )

    def wait(self, wait_ms: float) -> None:
        """See ``Contender``."""
        self._changed.wait(wait_ms / 1000)
        self._changed.clear()

    def wake(self) -> None:
        """See ``Contender``."""
        self._changed.set()


class SoloTenure:
    """The ``Holding`` that only ends when it is released, or when a second process was started."""

    def __init__(self, registry: SoloRegistry, record: SoloRecord, *, now: Callable[[], int], ahead: int) -> None:
        self._registry = registry
        self._record = record
        self._now = now
        self._ahead = ahead
        self._held = True

    @property
    def epoch(self) -> int:
        """See ``Holding``."""
        return self._record.epoch.epoch

    @property
    def ceiling(self) -> int:
        """See ``Holding``."""
        return self._record.epoch.ceiling

    def is_held(self) -> bool:
        """See ``Holding``."""
        return self._held

    def remaining_ms(self) -> float:
        """See ``Holding``."""
        return math.inf if self._held else 0.0

    def renew(self, *, reached: int = 0, durable: int = 0) -> bool:
        """See ``Holding``. While the store does not answer it stays held, and the timestamps below the ceiling last."""
        try:
            for _ in range(WRITES_PER_CALL_MAX):
                if not self._held or self._renew_once(reached, durable):
                    break
        except RecordInvalid:
            self._held = False
        except LeaseError:
            pass  # the ceiling still counts: the next renewal may get through
        return self._held

    def release(self) -> None:
        """See ``Holding``. Nobody waits for it, so nothing is written."""
        self._held = False

    def _renew_once(self, reached: int, durable: int) -> bool:
        """Look who holds the epoch, and move the ceiling up if need be; true when there is nothing more to try."""
        stored = self._registry.read()
        if stored is None or stored.nonce != self._record.nonce:
            self._held = False
            return True
        self._record = stored
        old = stored.epoch
        ceiling = raised_ceiling(old.ceiling, self._now(), max(reached, old.epoch), self._ahead)
        if ceiling is None:
            return True
        epoch = EpochRecord(old.epoch, ceiling, max(durable, old.durable))
        record = SoloRecord(epoch, stored.nonce, stored.address)
        self._registry.replace(stored, record)
        if self._registry.read() != record:
            return False
        self._record = record
        return True
