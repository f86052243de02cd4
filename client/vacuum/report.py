"""What a vacuum did, and what remains, as values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any


@dataclass(slots=True)
class TableReport:
    """One table. In a dry run: what would be done."""

    rows: int = 0
    rows_passed_over: int = 0
    """Of these: nobody wrote them since an earlier vacuum. Of such a row only the newest version of each column is
    counted below, whatever became of it.
    """
    columns_trimmed: int = 0
    """Columns of a row of which old versions were dropped."""
    columns_removed: int = 0
    """Columns of a row of which nothing at or below the horizon stays: deleted, or never committed."""
    shadow_columns_trimmed: int = 0
    shadow_cells_written: int = 0
    shadow_cells_left_out: int = 0
    """Of transactions whose records last: not written, where they were missing or not looked for."""
    transactions_aborted: int = 0
    """Undecided, and too old to live: aborted for good through the oracle."""
    transactions_undecided: int = 0
    """The same in a dry run, which aborts nobody."""
    versions_kept: int = 0
    """Versions at or below the horizon that stay."""
    aborted_cells_kept: int = 0
    """Versions that nobody will see, and that lie above one that is kept."""

    def add(self, other: TableReport) -> None:
        """Count another part of the same."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass(slots=True)
class VacuumReport:
    """A whole vacuum. Timestamps as they are everywhere; 0 commit-table rows where the table was left alone."""

    dry_run: bool
    horizon: int
    outcomes_horizon: int
    held_back_by: dict[str, int] = field(default_factory=dict)
    """The named snapshots without which the horizon would lie higher, and their timestamps, oldest first."""
    tables: dict[str, TableReport] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    """What could not be done, by table: then neither manifest nor commit table was touched."""
    manifest_records_dropped: int = 0
    manifest_claims_kept: int = 0
    """Of bulk transactions that were aborted, one row each stays: nobody must commit them as if they were empty."""
    commit_table_rows_dropped: int = 0
    commit_table_rows_lasting: int = 0
    """Of transactions with cells that need no shadow cells as long as these rows stay."""
    commit_table_rows_left_max: int = 0
    """One for each millisecond above the horizon of outcomes at most, and those that last."""

    def as_json(self) -> dict[str, Any]:
        """For ``json.dumps``."""
        return asdict(self)
