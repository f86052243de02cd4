"""What can end the demo early, each with a text for the person who runs it."""

from __future__ import annotations


class DemoError(Exception):
    """Base of the demo's errors; the text is meant to be shown as it is."""


class DataMissing(DemoError):
    """The package with the flights is not installed, or not as it is known."""


class ProcessFailed(DemoError):
    """A process that the demo started ended, or did not do its part within its limit."""


class Overdue(DemoError):
    """Something that had to come did not come within its limit."""


class ComparisonFailed(DemoError):
    """Numbers differ that have to be equal: a promise was broken."""
