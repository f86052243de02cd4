"""What stops a drill itself, as opposed to what it finds out."""

from __future__ import annotations


class DrillError(Exception):
    """Base of all errors of this room; the text is meant to be shown as it is."""


class DrillStalled(DrillError):
    """The drill waited for something up to its limit, and it did not come; the text says for what, and for how long."""


class ChildFailed(DrillError):
    """A process that the drill had started ended, or did not do what it was told."""
