"""Where one transaction stands, and what may still be done with it.

The invariant: what is refused changes nothing, and a transaction that has ended, or that the oracle gave up, serves
nobody any more.
"""

from __future__ import annotations

from types import TracebackType
from typing import Final

from client.errors import NOT_HEARD_OF, InvalidRequest, OutcomeUnknown, PythiaError, TransactionExpired
from client.transactions.status import TransactionStatus

INTERRUPTED: Final = "a write or an undoing in it was interrupted, and only a part of that may have been done"


class Change:
    """A change of what one transaction has written, or of its savepoints: made whole, refused whole, or found out.

    Whatever but a refusal ends the block, such as Ctrl-C between two steps of it, leaves the change under way for good.
    """

    __slots__ = ("is_under_way",)

    def __init__(self) -> None:
        self.is_under_way = False

    def require_none(self) -> None:
        """Raise ``InvalidRequest`` where an earlier one did not come to its end."""
        if self.is_under_way:
            raise InvalidRequest(f"{INTERRUPTED}: roll the transaction back, and begin another")

    def __enter__(self) -> None:
        self.require_none()
        self.is_under_way = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None or issubclass(kind, PythiaError):  # which are raised before anything is done
            self.is_under_way = False


class Standing:
    """The status of one transaction, and what else stands against its use."""

    def __init__(self, start_timestamp: int, *, read_only: bool) -> None:
        self._start_timestamp = start_timestamp
        self.read_only = read_only
        self.status = TransactionStatus.ACTIVE
        self.expired = False
        """Whether the oracle has given it up."""
        self.change = Change()
        """To be entered around each change of what it has written."""
        self._forbidden: str | None = None
        self.in_hook = False
        """Whether a hook is being called for it."""

    def is_open(self) -> bool:
        """Whether it has not ended, as far as is known."""
        return self.status in (TransactionStatus.ACTIVE, TransactionStatus.UNKNOWN)

    @property
    def forbidden(self) -> str | None:
        """Why it must not commit; ``None`` where nothing forbids it."""
        return self._forbidden or (INTERRUPTED if self.change.is_under_way else None)

    def forbid(self, reason: str) -> None:
        """Keep it from committing; the first reason counts."""
        self.require_not_ended()
        self._forbidden = self._forbidden or reason

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
