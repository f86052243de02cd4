"""What became of a transaction, as types that a caller has to tell apart."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Committed:
    """The transaction committed: for good, and visible to every snapshot at or above ``commit_timestamp``."""

    commit_timestamp: int
    is_lasting: bool = field(default=False, compare=False)
    """Whether its record stays in the commit table for as long as cells of it have no shadow cell: nobody has to write
    those. Known to who read the record.
    """


@dataclass(frozen=True, slots=True)
class Aborted:
    """The transaction can never commit: it is fenced at infinity, or its oracle refused it."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """No commit that counts is recorded, and nothing forbids one for ever."""


Outcome = Committed | Aborted | Undecided
