"""What can go wrong with a recorded history itself, as opposed to what a check finds in it."""

from __future__ import annotations


class HistoryError(ValueError):
    """A history, or a file with one, that cannot be read or recorded as it is; the text says what is wrong."""


class RecorderFull(HistoryError):
    """The recorder holds as many transactions as it may: save its history and start another, or raise its limit."""
