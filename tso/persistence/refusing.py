"""How a request of which nothing was done is told so, and counted."""

from __future__ import annotations

import math

from tso.decisions.admission import Refusal
from tso.decisions.oracle import Impossible, Later
from tso.metering import Metering
from tso.persistence.arrivals import Arrival
from wire import BadRequest, NotPrimary, Overloaded, ProtocolError


def refuse(arrival: Arrival, refusal: Refusal, metering: Metering) -> None:
    """Answer with what stands against the request."""
    match refusal:
        case Impossible():
            metering.refused("bad_request")
            arrival.answer(BadRequest(refusal.reason))
        case Later():
            metering.refused("overloaded")
            arrival.answer(Overloaded(max(1, math.ceil(refusal.wait_ms))))
        case ProtocolError():
            arrival.requester.refuse(refusal)


def refuse_as_standby(arrival: Arrival, metering: Metering) -> None:
    """Answer that this process is not primary, nor knows who is."""
    metering.refused("not_primary")
    arrival.answer(NotPrimary())
