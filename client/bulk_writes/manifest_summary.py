"""How much of a transaction's bulk writes is on record, as a value. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class BulkSummary:
    """The bulk writes of one transaction that are on record: its shadow cells were not all written yet."""

    jobs: int = 0
    unsealed: int = 0
    """Jobs that have not ended well."""
    rows: dict[str, int] = field(default_factory=dict)
    """Table → rows, of the attempts that count; of a job that has not ended, of all of them."""
    claimed: bool = False
    """Whether a process began to end the transaction."""

    def to_fields(self) -> dict[str, Any]:
        """For ``json.dumps``."""
        return asdict(self)
