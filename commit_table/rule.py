"""The rule of the commit table: which recorded commit counts.

A record of a transaction is the commit timestamp that an oracle wrote (or none) and the *fences* that others wrote. A
fence at F says: this transaction did not commit below F and never will. Hence

    committed  ⇔  a commit is recorded, and its timestamp is at or above the largest fence.

So a late write by a deposed oracle, whose commit timestamps all lie below the new epoch, is void once anybody of the
new epoch has fenced the transaction; and yet the transaction may still commit *in* the new epoch. A fence at infinity
is an abort. Omid's invalidation is the special case that knows only infinity (Shacham et al., "Taking Omid to the
Clouds", VLDB 2018).
"""

from __future__ import annotations

from dataclasses import dataclass

from commit_table.outcomes import Aborted, Committed, Outcome, Undecided
from commit_table.timestamps import TIMESTAMP_MAX

FENCE_AT_INFINITY = TIMESTAMP_MAX
"""Above every commit timestamp: nothing commits past this fence."""


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    """What the commit table holds on one transaction: ``largest_fence`` 0 means that it was never fenced."""

    commit_timestamp: int | None
    largest_fence: int = 0
    is_lasting: bool = False
    """Whether it stays for as long as cells of the transaction have no shadow cell."""

    def outcome(self) -> Outcome:
        """Apply the rule."""
        if self.commit_timestamp is not None and self.commit_timestamp >= self.largest_fence:
            return Committed(self.commit_timestamp, self.is_lasting)
        if self.largest_fence >= FENCE_AT_INFINITY:
            return Aborted()
        return Undecided()

    def needs_fence(self, fence: int) -> bool:
        """Whether a commit below ``fence`` could still come to count."""
        return isinstance(self.outcome(), Undecided) and self.largest_fence < fence
