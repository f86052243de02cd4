"""Which requests are not even decided over, or looked at, and why. Pure, but for the oracle that it asks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tso.decisions.oracle import Impossible, Later, Oracle
from tso.settings import Limits
from wire import Frame, ProtocolError, decode
from wire.gathering import GatheredCommits

Refusal = Impossible | Later | ProtocolError


def refusals(
    oracle: Oracle, limits: Limits, in_flight: int, frames: Sequence[Frame], gathered: GatheredCommits
) -> dict[int, Refusal]:
    """Of commit requests, by their place: what is wrong with them, or that there is no room for them now.

    ``in_flight``: transactions that are decided and not answered. Malformed ones are found alone, and so are impossible
    ones: the others have to be gathered anew without them.
    """
    if gathered.malformed:
        malformed = np.flatnonzero(gathered.well_formed == 0).tolist()
        return {place: what_is_wrong(frames[place]) for place in malformed}
    limit = limits.transactions_in_flight_max
    found: dict[int, Refusal] = {**oracle.impossible(gathered)}
    if not found and in_flight + gathered.start_timestamps.size <= limit:
        return found
    counts = np.diff(gathered.first)
    for place in np.flatnonzero(counts > limit).tolist():
        found[place] = Impossible(f"one request may commit {limit} transactions, not {counts[place]}")
    if found:
        return found
    late = np.flatnonzero(in_flight + gathered.first[1:] > limit).tolist()
    return dict.fromkeys(late, Later(limits.retry_after_ms))


def too_many(transactions: int, most: int) -> Impossible | None:
    """What stands against a request that names so many; each costs time of the event loop's thread, all in one go."""
    if transactions <= most:
        return None
    return Impossible(f"one request may name {most} transactions, not {transactions}")


def what_is_wrong(frame: Frame) -> ProtocolError:
    """The reason for which a request that was not gathered cannot be read."""
    try:
        decode(frame)
    except ProtocolError as error:
        return error
    raise AssertionError("a request that can be read was not gathered")
