"""Who waits for what: answers that may only leave in the order of the decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tso.arrivals import Arrival
from tso.deciding import Codes
from tso.metering import Metering
from tso.oracle import Decided, Recalled


class OwedDecision(NamedTuple):
    """A decision that the senders of some commit requests wait for; each sent ``counts`` transactions."""

    arrivals: Sequence[Arrival]
    counts: Sequence[int]
    decided: Decided
    since_s: float
    """When the first of the requests came, on the metering's clock."""

    def book(self, reasons: Codes, metering: Metering) -> None:
        """Take what was answered into the books: all at once, where all committed."""
        transactions = self.decided.asked.size
        metering.told(transactions, self.since_s)
        if reasons is self.decided.reasons and self.decided.start_timestamps.size == transactions:
            metering.all_committed(transactions)
        else:
            metering.reasons(reasons)


class OwedRecollection(NamedTuple):
    """A recollection that somebody waits for."""

    arrivals: tuple[Arrival]
    recalled: Recalled
