"""Limits of an oracle of which one process makes many: the defaults are for one that has a machine."""

from __future__ import annotations

from tso.settings import Limits

_LITTLE_MEMORY = {"conflict_map_entries_max": 50_000, "remembered_decisions_max": 65_536}


def small_limits(**changes: float) -> Limits:
    """The defaults, but a few MB where they take a hundred; changed by what a test says."""
    return Limits(**(_LITTLE_MEMORY | changes))  # type: ignore[arg-type]
