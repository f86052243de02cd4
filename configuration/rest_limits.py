"""Bounds on what one REST process takes on, with units in the names. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields


class InvalidLimit(ValueError):
    """A limit that cannot work; the text says which, and what to do."""


_LARGEST: Mapping[str, int] = {
    "connections_max": 100_000,
    "header_ms_max": 600_000,
    "unread_ms_max": 600_000,
    "body_ms_max": 600_000,
    "body_bytes_max": 2**28,
    "bodies_bytes_max": 2**34,
    "requests_max": 10_000,
    "requests_per_token_max": 10_000,
    "threads_max": 256,
    "deadline_ms": 600_000,
    "transactions_max": 1_000_000,
    "transactions_per_token_max": 1_000_000,
    "transaction_bytes_max": 2**32,
    "transactions_bytes_max": 2**36,
    "transaction_idle_ms_max": 86_400_000,
    "transaction_age_ms_max": 604_800_000,
    "savepoints_max": 1_000,
    "ended_max": 10_000_000,
    "rows_per_page_max": 100_000,
    "page_bytes_max": 2**28,
    "writes_per_request_max": 1_000_000,
    "cells_per_commit_max": 10_000_000,
    "transactions_per_request_max": 10_000,
    "idempotency_keys_max": 10_000_000,
    "idempotency_bytes_max": 2**34,
    "retry_after_ms": 60_000,
}
"""Beyond these a limit would bound nothing."""


@dataclass(frozen=True, slots=True)
class RestLimits:
    """Raises ``InvalidLimit``."""

    connections_max: int = 1_000
    """Connections at once. One more closes the one whose client has owed a whole request for longest."""
    header_ms_max: int = 10_000
    """How long a client may take over the head of a request, the first of a connection included."""
    unread_ms_max: int = 30_000
    """How long a client may leave so much of its answers unread that nothing more can be sent."""
    body_ms_max: int = 20_000
    """How long a client may take over the body of a request."""
    body_bytes_max: int = 2**20
    """The body of one request."""
    bodies_bytes_max: int = 128 * 2**20
    """Bodies held over all requests."""
    requests_max: int = 256
    """Requests being worked on at once; more are told `overloaded`."""
    requests_per_token_max: int = 192
    """Those of one token, from their heads on; fewer, where its `requests_in_flight_max` says so."""
    threads_max: int = 16
    """Threads that read and write tables; as many connections to the gateway."""
    deadline_ms: int = 10_000
    """How long a request may wait for an oracle, failovers included; before that as long for a thread, then it is told
    `overloaded`."""
    transactions_max: int = 1_000
    """Transactions held open here."""
    transactions_per_token_max: int = 500
    """Those of one token."""
    transaction_bytes_max: int = 16 * 2**20
    """What one of them may have written."""
    transactions_bytes_max: int = 256 * 2**20
    """What all of them may have written; once it is passed, nothing more is."""
    transaction_idle_ms_max: int = 60_000
    """How long one is kept that nobody uses; then it is rolled back."""
    transaction_age_ms_max: int = 3_600_000
    """How long one is kept at all."""
    savepoints_max: int = 100
    """Savepoints open in one transaction."""
    ended_max: int = 100_000
    """Ended transactions remembered, so that a repeated commit gets the same answer, about 500 bytes each."""
    rows_per_page_max: int = 1_000
    """Rows in one answer to a scan."""
    page_bytes_max: int = 4 * 2**20
    """Keys and values after which a page ends, though it has fewer rows; a single row may be larger."""
    writes_per_request_max: int = 10_000
    """Puts and deletes in one request."""
    cells_per_commit_max: int = 50_000
    """Cells or ids in a commit's write set."""
    transactions_per_request_max: int = 1_000
    """Transactions that one request may begin, commit, abort, ask about or keep alive."""
    idempotency_keys_max: int = 10_000
    """Answers remembered for repeated `Idempotency-Key`s; the oldest go first."""
    idempotency_bytes_max: int = 64 * 2**20
    """What these answers and their keys may take."""
    retry_after_ms: int = 100
    """What an `overloaded` answer asks a client to wait."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if not 0 < value <= _LARGEST[limit.name]:
                raise InvalidLimit(f"{limit.name} must lie in 1…{_LARGEST[limit.name]}, not {value}")
        if self.transaction_bytes_max > self.transactions_bytes_max:
            raise InvalidLimit(
                "transaction_bytes_max is more than transactions_bytes_max: lower the one, or raise the other"
            )
        if self.body_bytes_max > self.bodies_bytes_max:
            raise InvalidLimit("body_bytes_max is more than bodies_bytes_max: such a request could never be taken")

    @classmethod
    def parse(cls, texts: Iterable[str]) -> RestLimits:
        """The defaults, changed by texts such as ``transactions_max=50``. Raises ``InvalidLimit``."""
        names = {limit.name for limit in fields(cls)}
        chosen: dict[str, int] = {}
        for text in texts:
            name, _, value = (part.strip() for part in text.partition("="))
            if name not in names:
                raise InvalidLimit(f"there is no limit {name!r}; there are: {', '.join(sorted(names))}")
            try:
                chosen[name] = int(value)
            except ValueError:
                raise InvalidLimit(f"limit {name} needs a whole number, not {value!r}: write {name}=…") from None
        return cls(**chosen)
