"""What a caller of the client library may have to handle, and which of it is worth another try.

::

    PythiaError
    ├── InvalidRequest           the caller's mistake, or a closed manager: nothing was done, repeating does not help
    ├── TransactionAborted       the transaction did not commit and never will
    │   ├── Conflict             another transaction committed to one of its cells first
    │   ├── TableFenced          a table that it wrote was fenced after it began
    │   ├── SnapshotTooOld       the oracle forgot, time and again, what it would have had to be judged by
    │   ├── TransactionExpired   nothing was heard of it for longer than the oracle allows
    │   └── TransactionTooLarge  its write set is beyond what one commit may hold
    ├── OutcomeUnknown           the caller's deadline came before the answer; ask ``manager.outcome`` later
    ├── ReplyLost                the same, for who asks the oracle by itself
    └── NoPrimary                no oracle served within the time that the caller allowed
        ├── AccessDenied         one answered that does not let the caller in, or not do that: token, role, TLS, version
        └── UpgradeNeeded        none ever will: the installation is at a level that this library does not work at

Beside them, what HBase and its gateway answer with, of ``store`` and handed out by ``client``::

    StoreError
    ├── StoreUnavailable         no answer, or none in time: of a write it is not known whether it happened
    └── …                        what HBase refuses: a table that is gone, a cell that is too large
"""

from __future__ import annotations

from typing import Any

from store import StoreUnavailable

ABORTED_BY_ANOTHER = "its id was aborted through the oracle"
CLOSED = "the client is closed, as its manager is: make another one"
NOT_HEARD_OF = "the oracle heard nothing of it for too long and gave it up; run it again"


class PythiaError(Exception):
    """Base of all errors of this library. ``retriable``: a new transaction may succeed where this one did not."""

    retriable = False

    def __reduce__(self) -> tuple[Any, ...]:
        """By what it is, and not by calling it with its text: a pool of processes brings errors back to its owner, and
        waits for ever, or breaks, where one cannot be made anew.
        """
        return _as_it_was, (type(self), self.args), self.__dict__


def _as_it_was(kind: type[PythiaError], arguments: tuple[Any, ...]) -> PythiaError:
    return kind.__new__(kind, *arguments)


class InvalidRequest(PythiaError, ValueError):
    """A name, key, value, option or order of calls that cannot be served; the text says what can."""


class InvalidSettings(InvalidRequest):
    """Settings of a client that cannot work."""


class TransactionAborted(PythiaError):
    """The transaction did not commit and never will; nothing of it is visible to anybody."""

    retriable = True

    def __init__(self, start_timestamp: int, reason: str) -> None:
        super().__init__(f"transaction {start_timestamp} was aborted: {reason}")
        self.start_timestamp = start_timestamp
        self.reason = reason


class Conflict(TransactionAborted):
    """Another transaction committed to a cell (or row) of the write set, or to a guarded one, after this one took its
    snapshot.
    """


class TableFenced(TransactionAborted):
    """A table that the transaction wrote or guards was fenced (``manager.fence``) after its snapshot was taken, or
    dropped, or vacuumed further than its snapshot.
    """

    def __init__(self, start_timestamp: int, table: str, fenced_at: int) -> None:
        super().__init__(
            start_timestamp,
            f"table {table!r}, which it wrote or guards, was fenced at {fenced_at}, after its snapshot: somebody "
            "changes the table, has dropped it, or has vacuumed it beyond the snapshot of a transaction that was given "
            "up",
        )
        self.table = table
        self.fenced_at = fenced_at


class SnapshotTooOld(TransactionAborted):
    """The oracle does not remember every commit since the snapshot, nor since those at which it was revalidated."""


class TransactionExpired(TransactionAborted):
    """The oracle heard nothing of the transaction for ``transaction_life_ms`` and gave it up."""


class TransactionTooLarge(TransactionAborted):
    """The write set is larger than the oracle accepts in one commit."""

    retriable = False


class OutcomeUnknown(PythiaError):
    """The deadline came before the outcome was known. ``manager.outcome(start_timestamp)`` answers later."""

    def __init__(self, start_timestamp: int, waited_ms: int) -> None:
        super().__init__(
            f"the outcome of transaction {start_timestamp} was not known after {waited_ms} ms; "
            f"ask manager.outcome({start_timestamp}) later, and do not repeat its work before"
        )
        self.start_timestamp = start_timestamp
        self.waited_ms = waited_ms


class ReplyLost(PythiaError):
    """A request was sent and its answer did not come: it may have been done.

    Nobody meets it but who asks the oracle by itself (``AsyncOracleClient``, ``TransactionManager.oracle``): for all
    others the library finds out.
    """


class NoPrimary(PythiaError):
    """No primary oracle answered within the time allowed."""

    retriable = True

    def __init__(self, waited_ms: int, detail: str) -> None:
        super().__init__(f"no primary oracle answered within {waited_ms} ms: {detail}")
        self.waited_ms = waited_ms


class AccessDenied(NoPrimary):
    """An oracle answered, and does not let this client in, or not do that: waiting would not help.

    The text says what is missing. Nothing was done, as with every ``NoPrimary``.
    """

    retriable = False

    def __init__(self, reason: str) -> None:
        PythiaError.__init__(self, reason)
        self.waited_ms = 0


class UpgradeNeeded(NoPrimary):
    """The installation is at a level that this library does not work at; the text says what to upgrade."""

    retriable = False

    def __init__(self, detail: str) -> None:
        PythiaError.__init__(self, detail)
        self.waited_ms = 0


class NoThreadFree(StoreUnavailable):
    """No thread came free in time for a call that blocks, or none can be started: the call was not made."""
