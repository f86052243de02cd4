"""What a program is told of its transactions: when each begins and ends, and how far its commit has come.

One object for both kinds, since both are calls at fixed points of a transaction's life, in the thread that made the
transaction take that step. What an exception does follows from what is certain at that point: before anything is sent
it stops what was about to happen; later it is logged and changes nothing, since an outcome is a fact that no caller may
be misled about. (Omid has the six hooks around begin, commit and rollback; there an exception in a hook after the
commit looks to the caller like a commit that failed.)
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, ParamSpec

from client.errors import InvalidSettings
from commit_table import Committed

if TYPE_CHECKING:
    from client.transactions.transaction import Transaction

_log = logging.getLogger(__name__)

Arguments = ParamSpec("Arguments")


class CommitStep(Enum):
    """How far a commit has come; what a hook is told, and where a drill pulls the plug."""

    WRITTEN = "written"
    """Every tentative version is in the store; the commit has not been sent."""
    SENT = "sent"
    """The commit request is out; its answer has not come."""
    ANSWERED = "answered"
    """The transaction committed; no shadow cell is written yet."""
    SHADOWED = "shadowed"
    """All is done."""


class TransactionHooks:
    """Does nothing; override what is of interest and give it to the manager as ``hooks``.

    Called for the transactions that the manager begins, in the caller's thread, which waits for it (a task's: in the
    thread of its call, with its context variables); for one that came by ``resume`` only from its commit or rollback
    on. A hook may use the transaction it is given, and not end it: that is refused with ``InvalidRequest``. Not told
    of: ``manager.abort``, which ends somebody's transaction by its id, ``manager.fence``, and snapshots. Of exceptions
    only the kinds below ``Exception`` are dealt with as described; others go through.
    """

    @classmethod
    def of(cls, given: TransactionHooks | None) -> TransactionHooks:
        """What was given, or hooks that do nothing. Raises ``InvalidSettings`` for something else."""
        if given is not None and not isinstance(given, TransactionHooks):
            raise InvalidSettings(f"hooks is an object of a class derived from TransactionHooks, not {given!r}")
        return cls() if given is None else given

    def before_begin(self) -> None:
        """A transaction is about to begin. An exception goes to who wanted it, and none is begun."""

    def after_begin(self, transaction: Transaction) -> None:
        """It has begun. An exception goes to who wanted it, and it is rolled back."""

    def before_commit(self, transaction: Transaction) -> None:
        """Its commit was asked for; it can still be written into, or ``forbid_commit`` be called on it.

        An exception has it rolled back: ``commit`` raises ``TransactionAborted`` from it.
        """

    def commit_step(self, step: CommitStep, start_timestamp: int) -> None:
        """Its commit has come so far. ``SENT`` comes once more where it is asked again. An exception is logged.

        With ``shadow_cells="in_background"`` ``SHADOWED`` comes after ``after_commit``, in the thread that wrote them.
        """

    def after_commit(self, transaction: Transaction, committed: Committed) -> None:
        """It has committed, whoever had it commit. An exception is logged."""

    def before_rollback(self, transaction: Transaction) -> None:
        """It is about to be rolled back. An exception is logged, and it is rolled back all the same."""

    def after_rollback(self, transaction: Transaction) -> None:
        """It never commits: it was rolled back, or its commit ended in ``TransactionAborted``. An exception is logged.

        After ``OutcomeUnknown``, and when it has expired, neither this nor ``after_commit`` comes before ``rollback``.
        """


def notify(hook: Callable[Arguments, None], *arguments: Arguments.args, **named: Arguments.kwargs) -> None:
    """Call a hook that cannot change what it is told of: what it raises is logged."""
    try:
        hook(*arguments, **named)
    except Exception:
        _log.exception("the hook %s failed; what it was told of stands", getattr(hook, "__qualname__", hook))
