"""What a file can have against it, beside its rows: those are ``client.spark.errors.InvalidData``."""

from __future__ import annotations

from client.errors import InvalidRequest


class UnreadableFile(InvalidRequest):
    """A file that cannot be opened, or is not of the format that it should be; the text names it."""
