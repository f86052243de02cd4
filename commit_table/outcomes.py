"""What became of a transaction, as types that a caller has to tell apart."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Committed:
    """The transaction committed: for good, and visible to every snapshot at or above ``commit_timestamp``."""

    commit_timestamp: int


@dataclass(frozen=True, slots=True)
class Aborted:
    """The transaction can never commit: it is fenced at infinity, or its oracle refused it."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """No commit that counts is recorded, and nothing forbids one for ever."""


Outcome = Committed | Aborted | Undecided
