"""What can go wrong with a store of cells, and which of it is worth another try."""

from __future__ import annotations


class StoreError(Exception):
    """Base of all errors of this room. ``retriable``: the same call may succeed later."""

    retriable = False


class StoreUnavailable(StoreError):
    """The store or its gateway did not answer within the limits. Nothing is known of what the call did."""

    retriable = True


class TableMissing(StoreError):
    """There is no table, or no column family, of that name."""


class TableExists(StoreError):
    """A table of that name is there already."""


class InvalidCell(StoreError, ValueError):
    """A row key, column, value or timestamp that the store cannot hold; the text says what is allowed."""
