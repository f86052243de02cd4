"""Where one transaction stands, and what may still be done with it.

The invariant: what is refused changes nothing, and a transaction that has ended, or that the oracle gave up, serves
nobody any more.
"""

from __future__ import annotations

from client.errors import NOT_HEARD_OF, InvalidRequest, OutcomeUnknown, TransactionExpired
from client.status import TransactionStatus


class Standing:
    """The status of one transaction, and what else stands against its use."""

    def __init__(self, start_timestamp: int, *, read_only: bool) -> None:
        self._start_timestamp = start_timestamp
        self.read_only = read_only
        self.status = TransactionStatus.ACTIVE
        self.expired = False
        """Whether the oracle has given it up."""
        self.forbidden: str | None = None
        """Why it must not commit; ``None`` where nobody forbade it."""
        self.in_hook = False
        """Whether a hook is being called for it."""

    def is_open(self) -> bool:
        """Whether it has not ended, as far as is known."""
        return self.status in (TransactionStatus.ACTIVE, TransactionStatus.UNKNOWN)

    def forbid(self, reason: str) -> None:
        """Keep it from committing; the first reason counts."""
        self.require_not_ended()
        if self.forbidden is None:
            self.forbidden = reason

    def require_not_ended(self) -> None:
        """Raise ``OutcomeUnknown`` or ``InvalidRequest`` where its commit or rollback was called."""
        if self.status is TransactionStatus.UNKNOWN:
            raise OutcomeUnknown(self._start_timestamp, 0)
        if self.status is not TransactionStatus.ACTIVE:
            raise InvalidRequest(
                f"transaction {self._start_timestamp} is {self.status.value}: a transaction is used once, begin another"
            )

    def require_active(self) -> None:
        """Raise unless it can be read with."""
        self.require_not_ended()
        if self.expired:
            raise TransactionExpired(self._start_timestamp, NOT_HEARD_OF)

    def require_writable(self) -> None:
        """Raise unless it can be written into."""
        self.require_active()
        if self.read_only:
            raise InvalidRequest("a read-only transaction does not write")

    def require_outside_hooks(self) -> None:
        """Raise ``InvalidRequest`` where it is a hook that wants to end it."""
        if self.in_hook:
            raise InvalidRequest("a hook does not end its transaction; before the commit it may call forbid_commit")
