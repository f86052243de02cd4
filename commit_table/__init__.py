"""Which transaction committed, and when: the layout and its rules, over any store of cells."""

from commit_table.forgetting import Forgotten
from commit_table.outcomes import Aborted, Committed, Outcome, Undecided
from commit_table.rule import FENCE_AT_INFINITY, TransactionRecord
from commit_table.table import CommitTable, system_table, table_name

__all__ = [
    "FENCE_AT_INFINITY",
    "Aborted",
    "CommitTable",
    "Committed",
    "Forgotten",
    "Outcome",
    "TransactionRecord",
    "Undecided",
    "system_table",
    "table_name",
]
