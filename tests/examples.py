"""How many examples Hypothesis tries of each property: more on demand, since each run draws others."""

from __future__ import annotations

import os

FACTOR_VARIABLE = "PYTHIA_TEST_EXAMPLES"
FACTOR_MAX = 10_000


def examples(usual: int) -> int:
    """``usual``, or so many times as many as the environment says. Raises ``ValueError`` where that is no number."""
    written = os.environ.get(FACTOR_VARIABLE, "1")
    if not written.isdecimal() or not 1 <= int(written) <= FACTOR_MAX:
        raise ValueError(f"{FACTOR_VARIABLE} is how many times as many examples, 1…{FACTOR_MAX}, not {written!r}")
    return usual * int(written)
