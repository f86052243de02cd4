"""Who comes next where more wait than there are places: fair to parties, however many each of them sends.

Pure. The rule: a place that comes free goes to the party that holds the fewest of them, of several to the one that got
its last one longest ago, and of its own to the first. So whoever asks for much waits behind himself, and whoever asks
for little waits for the next place to come free. (Max-min fairness over places, as the fair schedulers of Hadoop and
Spark have it for jobs; no place is kept free for anybody.)
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Waiter = TypeVar("Waiter")


@dataclass(slots=True)
class _Party(Generic[Waiter]):
    """One that holds places or waits for them; ``last``: the number of the place that it was given last."""

    held: int = 0
    last: int = 0
    waiting: OrderedDict[Waiter, None] = field(default_factory=OrderedDict)
    """In the order in which they came."""


class FairLine(Generic[Waiter]):
    """So many ``places``, and who waits for one of them. Waiters are told apart by identity or hash."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._parties: dict[str, _Party[Waiter]] = {}
        """Those that hold or wait, in the order in which they came to that."""
        self._given = 0

    def take(self, party: str) -> bool:
        """Take a place for a party, if one is free."""
        if not self._free:
            return False
        self._free -= 1
        self._give(self._parties.setdefault(party, _Party()))
        return True

    def wait(self, party: str, waiter: Waiter) -> None:
        """Stand in line for a party: ``give_back`` names him some time, unless he leaves."""
        self._parties.setdefault(party, _Party()).waiting[waiter] = None

    def leave(self, party: str, waiter: Waiter) -> None:
        """Wait no more; nothing, for who does not wait."""
        known = self._parties.get(party)
        if known is not None and waiter in known.waiting:
            del known.waiting[waiter]
            self._forget(party, known)

    def give_back(self, party: str) -> tuple[str, Waiter] | None:
        """A party's place comes free: whose it is now, of which party, and waits no more; ``None``: nobody waits."""
        known = self._parties[party]
        known.held -= 1
        self._forget(party, known)
        waiting = [each for each, known in self._parties.items() if known.waiting]
        if not waiting:
            self._free += 1
            return None
        following = min(waiting, key=self._rank)
        known = self._parties[following]
        waiter, _ = known.waiting.popitem(last=False)
        self._give(known)
        return following, waiter

    def _give(self, party: _Party[Waiter]) -> None:
        self._given += 1
        party.held += 1
        party.last = self._given

    def _rank(self, party: str) -> tuple[int, int]:
        known = self._parties[party]
        return known.held, known.last

    def _forget(self, party: str, known: _Party[Waiter]) -> None:
        """What nobody asks for any more: there may be any number of parties in time."""
        if not known.waiting and not known.held:
            del self._parties[party]
