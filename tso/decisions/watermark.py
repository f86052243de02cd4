"""The durable watermark: below it, every commit that was decided is persisted, and answered.

A begin gets it as its snapshot, at once, whatever is still on its way to the commit table. Two promises hang on it: a
snapshot never includes a commit that may yet be lost, and it includes every commit acknowledged before it was given.
Invariant: decisions are released (that is, answered) strictly in the order in which they were made, each only when it
and all before it are durable.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass


@dataclass(slots=True)
class _Decision:
    number: int
    first_commit_timestamp: int | None
    durable: bool


class DurableWatermark:
    """Decisions that are not released yet, oldest first; each has a number by which the caller knows it."""

    def __init__(self) -> None:
        self._waiting: deque[_Decision] = deque()
        self._by_number: dict[int, _Decision] = {}
        self._next_number = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def decided(self, first_commit_timestamp: int | None) -> int:
        """Take in a decision whose smallest commit timestamp is this; ``None``: nothing in it has to be persisted.

        Commit timestamps must grow from decision to decision. Returns the decision's number.
        """
        number = self._next_number
        self._next_number += 1
        decision = _Decision(number, first_commit_timestamp, durable=first_commit_timestamp is None)
        self._waiting.append(decision)
        self._by_number[number] = decision
        return number

    def persisted(self, number: int) -> None:
        """The commits of that decision are in the commit table."""
        self._by_number[number].durable = True

    def release(self) -> list[int]:
        """Take out the decisions that may be answered now, in order."""
        released = []
        while self._waiting and self._waiting[0].durable:
            number = self._waiting.popleft().number
            del self._by_number[number]
            released.append(number)
        return released

    def snapshot(self, last_issued: int) -> int:
        """The watermark: below every commit not released yet, or ``last_issued``, the largest timestamp handed out."""
        for decision in self._waiting:
            if decision.first_commit_timestamp is not None:
                return decision.first_commit_timestamp - 1
        return last_issued
