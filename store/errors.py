"""What can go wrong with a store of cells, and which of it is worth another try."""

from __future__ import annotations


class StoreError(Exception):
    """Base of all errors of this room. ``retriable``: the same call may succeed later."""

    retriable = False


class StoreUnavailable(StoreError):
    """The store or its gateway did not answer within the limits. Nothing is known of what the call did."""

    retriable = True


class StoreClosed(StoreUnavailable):
    """The store was closed, and stays so: nothing was done."""

    retriable = False

    def __init__(self, reason: str = "the store is closed, as its manager is: make another one") -> None:
        super().__init__(reason)


class TableMissing(StoreError):
    """There is no table, or no column family, of that name."""


class TableExists(StoreError):
    """A table of that name is there already."""


class CannotPreSplit(StoreError):
    """The store has no means to make a table with several regions; the text says what is needed for it."""


class InvalidCell(StoreError, ValueError):
    """A row key, column, value or timestamp that the store cannot hold; the text says what is allowed."""
