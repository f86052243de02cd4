"""What a mutation is: one rule, broken in one place, and the tests that have to notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutation:
    """``snippet`` occurs exactly once in ``file``; with ``broken`` in its place, ``caught_by`` has to fail."""

    name: str
    """What the broken code does, as a sentence."""
    file: str
    """Below the project's root."""
    snippet: str
    broken: str
    caught_by: str
    """Test modules or tests below ``tests/``, with a space between them."""
