"""Which tenures there were: the record of them, bounded, for people to look at. Pure.

Nothing is decided by it, so nobody waits for it: a primary adds its tenure after it serves. Invariants: a tenure is in
it once, under its epoch, in the order of epochs whoever wrote first; and it never has more than ``TENURES_MAX``, the
oldest going first.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from lease.errors import RecordInvalid
from lease.records import TIMESTAMP_MAX, LeaseRecord, check_addresses, check_name
from versions.formats import TENURES

TENURES_MAX = 64
HISTORY_BYTES_MAX = 262_144

Cause = Literal["first start", "lease ran out", "handed over"]
"""Why a tenure began: nobody served before; the holder before went silent; it gave the lease back."""


@dataclass(frozen=True, slots=True)
class Succession:
    """How a process came to the lease, by its own monotonic clock.

    ``since_ms``: when it saw the last renewal of the lease before, or its release; where it held that lease itself,
    when it ended. ``seen``: it saw that happen; else it came later, and nobody can tell how long the lease had been so.
    """

    cause: Cause
    since_ms: float
    seen: bool

    def outage_ms(self, now_ms: float) -> float | None:
        """For how long nobody had served at ``now_ms``, as far as it saw; ``None``: nobody had before."""
        return None if self.cause == "first start" else max(0.0, now_ms - self.since_ms)


def succession(replaced: LeaseRecord | None, first: bool, holder: str, since_ms: float, seen: bool) -> Succession:
    """How ``holder`` comes to a lease that it replaces as it stood since ``since_ms``; ``first``: nobody ever served.

    Of a lease under its own name that ended without a release it did not look at the renewals: it made them.
    """
    if first:
        return Succession("first start", since_ms, seen=False)
    if replaced is not None and replaced.released:
        return Succession("handed over", since_ms, seen)
    return Succession("lease ran out", since_ms, seen and replaced is not None and replaced.holder != holder)


@dataclass(frozen=True, slots=True)
class PastTenure:
    """One tenure, present or past. Raises ``RecordInvalid``.

    ``since_ms``: when it began to serve, by its wall clock, milliseconds since 1970. ``outage_ms``: for how long nobody
    had served then, as the new primary measured it; ``None``: nobody had before. ``at_least``: it may have been longer.
    ``rest``: where the holder's REST was, ``""``: it had none.
    """

    epoch: int
    holder: str
    address: str
    rest: str
    since_ms: int
    cause: Cause
    outage_ms: int | None
    at_least: bool

    def __post_init__(self) -> None:
        check_name("holder", self.holder)
        check_addresses(tuple(filter(None, (self.address, self.rest))))
        _check(type(self.epoch) is int and 1 <= self.epoch <= TIMESTAMP_MAX, f"epoch {self.epoch!r}")
        _check(type(self.since_ms) is int and 0 <= self.since_ms <= TIMESTAMP_MAX, f"since_ms {self.since_ms!r}")
        _check(self.cause in get_args(Cause), f"cause {self.cause!r}")
        outage = self.outage_ms
        _check(outage is None or (type(outage) is int and 0 <= outage <= TIMESTAMP_MAX), f"outage_ms {outage!r}")
        _check(isinstance(self.at_least, bool), f"at_least {self.at_least!r}")


@dataclass(frozen=True, slots=True)
class History:
    """The last tenures, oldest first."""

    tenures: tuple[PastTenure, ...] = ()

    def with_tenure(self, tenure: PastTenure) -> History:
        """With one more, or as it was where that one is there already. Late ones find their place."""
        if any(tenure.epoch == known.epoch for known in self.tenures):
            return self
        ordered = sorted((*self.tenures, tenure), key=lambda one: one.epoch)
        return History(tuple(ordered[-TENURES_MAX:]))

    def encode(self) -> bytes:
        """The record as it is stored."""
        fields = {"format": TENURES.newest, "tenures": [asdict(tenure) for tenure in self.tenures]}
        return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def parse(cls, data: bytes) -> History:
        """The record from stored bytes. Raises ``RecordInvalid`` with what is wrong, and what to do."""
        try:
            _check(len(data) <= HISTORY_BYTES_MAX, f"{len(data)} bytes, more than {HISTORY_BYTES_MAX}")
            return _history_of(json.loads(data.decode()))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise RecordInvalid(
                f"the stored history cannot be read: {error}; nothing depends on it: upgrade this program if another "
                "wrote it, or remove the znode and it begins anew"
            ) from None


def _history_of(fields: dict[str, Any]) -> History:
    TENURES.require_known(fields["format"])
    tenures = [PastTenure(**one) for one in fields["tenures"]]
    epochs = [tenure.epoch for tenure in tenures]
    _check(len(tenures) <= TENURES_MAX, f"{len(tenures)} tenures, more than {TENURES_MAX}")
    _check(epochs == sorted(set(epochs)), "tenures are not in the order of their epochs")
    return History(tuple(tenures))


def _check(condition: bool, what: str) -> None:
    if not condition:
        raise RecordInvalid(f"it has {what}")
