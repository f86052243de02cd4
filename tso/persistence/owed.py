"""Who waits for what: answers that may only leave in the order of the decisions.

Invariant: what turns out void is taken out of all that is owed when it becomes known. So an answer is true by the time
at which it may leave, whatever is forgotten meanwhile: it leaves after the writes of all commits that it tells of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tso.decisions.oracle import Decided, Recalled, Void
from tso.metering import Metering
from tso.persistence.arrivals import Arrival


class OwedDecision(NamedTuple):
    """A decision that the senders of some commit requests wait for; each sent ``counts`` transactions."""

    arrivals: Sequence[Arrival]
    counts: Sequence[int]
    decided: Decided
    since_s: float
    """When the first of the requests came, on the metering's clock."""

    def but_for(self, void: Void) -> OwedDecision:
        """The same, where these did not commit after all."""
        return self._replace(decided=self.decided.but_for(void))

    def book(self, metering: Metering) -> None:
        """Take what was answered into the books: all at once, where all committed."""
        transactions = self.decided.asked.size
        metering.told(transactions, self.since_s)
        if self.decided.start_timestamps.size == transactions:
            metering.all_committed(transactions)
        else:
            metering.reasons(self.decided.reasons)


class OwedRecollection(NamedTuple):
    """A recollection that somebody waits for."""

    arrivals: tuple[Arrival]
    recalled: Recalled

    def but_for(self, void: Void) -> OwedRecollection:
        """The same, where these did not commit after all."""
        return self._replace(recalled=self.recalled.but_for(void))
