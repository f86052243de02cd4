"""Who waits for what: answers that may only leave in the order of the decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tso.arrivals import Arrival
from tso.oracle import Decided, Recalled


class OwedDecision(NamedTuple):
    """A decision that the senders of some commit requests wait for; each sent ``counts`` transactions."""

    arrivals: Sequence[Arrival]
    counts: Sequence[int]
    decided: Decided


class OwedRecollection(NamedTuple):
    """A recollection that somebody waits for."""

    arrival: Arrival
    recalled: Recalled
