"""What a user of the Spark data source can get wrong; each text says which column, option or row, and what to do."""

from __future__ import annotations

from client.errors import InvalidRequest


class InvalidMapping(InvalidRequest):
    """A table mapping that contradicts itself, is unreadable, or does not fit a DataFrame."""


class InvalidOption(InvalidRequest):
    """An option of the data source that is missing, unknown, or not allowed together with another."""


class InvalidData(InvalidRequest):
    """A row that cannot be written as the mapping says, or a cell that cannot be read as it says."""
