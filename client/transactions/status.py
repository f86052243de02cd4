"""Where a transaction stands, as its program knows. Pure."""

from __future__ import annotations

from enum import Enum


class TransactionStatus(Enum):
    """A transaction leaves ``ACTIVE`` once and for all; ``UNKNOWN`` ends in one of the other two."""

    ACTIVE = "active"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
