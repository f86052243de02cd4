"""Timestamps as people read them: milliseconds since the start of the run, and the counter."""

from __future__ import annotations

import re

from commit_table.timestamps import counter_of, milliseconds_of
from tests.simulation.processes import WALL_START_US


def shown(timestamp: int) -> str:
    """``@1234.5``: the sixth timestamp of the millisecond 1,234 of the run."""
    return f"@{milliseconds_of(timestamp) - WALL_START_US // 1000}.{counter_of(timestamp)}"


def shown_in(text: str) -> str:
    """A text with the timestamps in it as people read them."""
    return _RAW.sub(lambda found: shown(int(found[0])), text)


_RAW = re.compile(r"\b47[0-9]{16}\b")
"""Timestamps of a run lie within some hours of its start."""
