"""Bounds on what one REST process takes on, with units in the names. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from configuration.reasons import CONNECTION, MEMORY, THREAD, WAIT
from configuration.setting import Contradiction, Section, first_problem, setting, settings_of


class InvalidLimit(ValueError):
    """A limit that cannot work; the text says which, and what to do."""


_HELD = "what is held for so long is forgotten by its caller"


@dataclass(frozen=True, slots=True)
class RestLimits:
    """Raises ``InvalidLimit``."""

    connections_max: int = setting(
        1_000,
        "connections",
        "Connections at once. One more closes the one whose client has owed a whole request for longest.",
        least=1,
        most=100_000,
        because=CONNECTION,
    )
    header_ms_max: int = setting(
        10_000,
        "ms",
        "How long a client may take over the head of a request, the first of a connection included.",
        least=1,
        most=600_000,
        because=WAIT,
    )
    unread_ms_max: int = setting(
        30_000,
        "ms",
        "How long a client may leave so much of its answers unread that nothing more can be sent.",
        least=1,
        most=600_000,
        because=WAIT,
    )
    body_ms_max: int = setting(
        20_000,
        "ms",
        "How long a client may take over the body of a request.",
        least=1,
        most=600_000,
        because=WAIT,
    )
    body_bytes_max: int = setting(
        2**20,
        "bytes",
        "The body of one request.",
        least=1,
        most=2**28,
        because=MEMORY,
    )
    bodies_bytes_max: int = setting(
        128 * 2**20,
        "bytes",
        "Bodies held over all requests.",
        least=1,
        most=2**34,
        because=MEMORY,
    )
    requests_max: int = setting(
        256,
        "requests",
        "Requests being worked on at once; more are told `overloaded`.",
        least=1,
        most=10_000,
        because=MEMORY,
    )
    requests_per_token_max: int = setting(
        192,
        "requests",
        "Those of one token, from their heads on; fewer, where its `requests_in_flight_max` says so.",
        least=1,
        most=10_000,
        because=MEMORY,
    )
    threads_max: int = setting(
        16,
        "threads",
        "Threads that read and write tables; as many connections to the gateway.",
        least=1,
        most=256,
        because=THREAD,
    )
    deadline_ms: int = setting(
        10_000,
        "ms",
        "How long a request may wait for an oracle, failovers included; before that as long for a thread, then it is "
        "told `overloaded`.",
        least=1,
        most=600_000,
        because=WAIT,
    )
    transactions_max: int = setting(
        1_000,
        "transactions",
        "Transactions held open here.",
        least=1,
        most=1_000_000,
        because=MEMORY,
    )
    transactions_per_token_max: int = setting(
        500,
        "transactions",
        "Those of one token.",
        least=1,
        most=1_000_000,
        because=MEMORY,
    )
    transaction_bytes_max: int = setting(
        16 * 2**20,
        "bytes",
        "What one of them may have written.",
        least=1,
        most=2**32,
        because=MEMORY,
    )
    transactions_bytes_max: int = setting(
        256 * 2**20,
        "bytes",
        "What all of them may have written; once it is passed, nothing more is.",
        least=1,
        most=2**36,
        because=MEMORY,
    )
    transaction_idle_ms_max: int = setting(
        60_000,
        "ms",
        "How long one is kept that nobody uses; then it is rolled back.",
        least=1,
        most=86_400_000,
        because=_HELD,
    )
    transaction_age_ms_max: int = setting(
        3_600_000,
        "ms",
        "How long one is kept at all.",
        least=1,
        most=604_800_000,
        because=_HELD,
    )
    savepoints_max: int = setting(
        100,
        "savepoints",
        "Savepoints open in one transaction.",
        least=1,
        most=1_000,
        because=MEMORY,
    )
    ended_max: int = setting(
        100_000,
        "transactions",
        "Ended transactions remembered, so that a repeated commit gets the same answer: about 200 bytes each, "
        "1,000 where it was refused.",
        least=1,
        most=10_000_000,
        because=MEMORY,
    )
    rows_per_page_max: int = setting(
        1_000,
        "rows",
        "Rows in one answer, of a range or of what changed in it.",
        least=1,
        most=100_000,
        because=MEMORY,
    )
    page_bytes_max: int = setting(
        4 * 2**20,
        "bytes",
        "Keys and values after which a page ends, though it has fewer rows; a single row may be larger.",
        least=1,
        most=2**28,
        because=MEMORY,
    )
    rows_looked_at_max: int = setting(
        100_000,
        "rows",
        "Rows looked at for a page, after which it ends, however few of them are there still, or changed.",
        least=1,
        most=10_000_000,
        because=WAIT,
    )
    reads_per_request_max: int = setting(
        1_000,
        "rows",
        "Rows that one request may name to be read.",
        least=1,
        most=100_000,
        because=MEMORY,
    )
    writes_per_request_max: int = setting(
        10_000,
        "writes",
        "Puts and deletes in one request.",
        least=1,
        most=1_000_000,
        because=MEMORY,
    )
    cells_per_commit_max: int = setting(
        50_000,
        "cells",
        "Cells or ids in a commit's write set, and what it guards.",
        least=1,
        most=10_000_000,
        because=MEMORY,
    )
    transactions_per_request_max: int = setting(
        1_000,
        "transactions",
        "Transactions that one request may begin, commit, abort, ask about or keep alive.",
        least=1,
        most=10_000,
        because=MEMORY,
    )
    idempotency_keys_max: int = setting(
        10_000,
        "keys",
        "Answers remembered for repeated `Idempotency-Key`s; the oldest go first.",
        least=1,
        most=10_000_000,
        because=MEMORY,
    )
    idempotency_bytes_max: int = setting(
        64 * 2**20,
        "bytes",
        "What these answers and their keys may take.",
        least=1,
        most=2**34,
        because=MEMORY,
    )
    retry_after_ms: int = setting(
        100,
        "ms",
        "What an `overloaded` answer asks a client to wait.",
        least=1,
        most=60_000,
        because="a client that waits for longer misses it when it is free again",
    )

    def __post_init__(self) -> None:
        problem = first_problem(REST_LIMITS, asdict(self))
        if problem is not None:
            raise InvalidLimit(problem)


def _contradictions(limits: Mapping[str, Any]) -> Iterator[Contradiction]:
    if limits["transaction_bytes_max"] > limits["transactions_bytes_max"]:
        yield Contradiction(
            ("transaction_bytes_max", "transactions_bytes_max"),
            "transaction_bytes_max is more than transactions_bytes_max: lower the one, or raise the other",
        )
    if limits["body_bytes_max"] > limits["bodies_bytes_max"]:
        yield Contradiction(
            ("body_bytes_max", "bodies_bytes_max"),
            "body_bytes_max is more than bodies_bytes_max: such a request could never be taken",
        )


REST_LIMITS = Section(
    "oracle.rest_limits",
    "What the REST process beside an oracle takes on: `--rest-limit NAME=VALUE`, as often as needed, or "
    "`PYTHIA_REST_LIMITS` with `NAME=VALUE …`.",
    settings_of(RestLimits),
    _contradictions,
    many_environment="PYTHIA_REST_LIMITS",
)
