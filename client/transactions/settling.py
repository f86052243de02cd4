"""The end of a job that is not to be run again for nothing: its commit, or the certainty that it never commits."""

from __future__ import annotations

from client.errors import InvalidRequest, NoPrimary, OutcomeUnknown, TransactionAborted
from client.transactions.transaction import Transaction
from commit_table import Committed


def commit_or_settle(transaction: Transaction) -> None:
    """Commit; where the deadline came before the answer, ask once more, now that the transaction must end either way.

    Returns once the transaction is committed. Raises ``TransactionAborted`` once it never can be, ``OutcomeUnknown``
    where nobody answers.
    """
    try:
        transaction.commit()
    except OutcomeUnknown as unknown:
        try:
            outcome = transaction.rollback()
        except (NoPrimary, InvalidRequest):  # nobody serves, or the manager has been closed
            raise unknown from None
        if not isinstance(outcome, Committed):
            raise TransactionAborted(transaction.start_timestamp, "the answer to its commit was lost") from unknown
