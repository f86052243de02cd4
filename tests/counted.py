"""All that is counted anywhere: by oracles, by REST, by programs."""

from __future__ import annotations

from typing import Final

from client.metrics.families import FAMILIES as OF_PROGRAMS
from rest.metric_families import FAMILIES as OF_REST
from wire.metric_families import FAMILIES as OF_ORACLES
from wire.metric_families import Family, family_of

__all__ = ["FAMILIES", "OF_ORACLES", "OF_PROGRAMS", "OF_REST", "family_named"]

FAMILIES: Final = (*OF_ORACLES, *OF_REST, *OF_PROGRAMS)


def family_named(sample: str) -> Family | None:
    """``family_of``, of whatever is counted anywhere."""
    return family_of(sample, FAMILIES)
