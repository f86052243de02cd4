"""Chance that leaves nothing out for long. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Generic, TypeVar

Card = TypeVar("Card")


class Deck(Generic[Card]):
    """Deals its cards in an order of chance, all of them before any comes again.

    A story is short: what comes one time in ten, each time anew, is in four stories of ten not once.
    """

    def __init__(self, choice: random.Random, cards: Iterable[Card]) -> None:
        self._choice = choice
        self._cards = tuple(cards)
        self._left: list[Card] = []

    def deal(self) -> Card:
        """The next card."""
        if not self._left:
            self._left = self._choice.sample(self._cards, len(self._cards))
        return self._left.pop()
