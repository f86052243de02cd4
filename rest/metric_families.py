"""What REST's own counts mean: the one list that they are made from, and that documentation and dashboard are held to.

Beside the oracle's (``wire.metric_families``) and those of the transactions that are held here
(``client.metrics.families``).
"""

from __future__ import annotations

from typing import Final

from wire.metric_families import Family

FAMILIES: Final[tuple[Family, ...]] = (
    Family(
        "pythia_rest_requests_total",
        "counter",
        "Requests, by operation and by what they were answered: `ok`, the code of a problem, or `gone`, where the "
        "client went before its request was whole. Operations are named as in the OpenAPI document; `none`: it came to "
        "no route.",
        ("operation", "answer"),
    ),
    Family(
        "pythia_rest_request_seconds",
        "histogram",
        "Per request: from its head to the end of its answer, the time that the client takes over its body included.",
        ("operation",),
    ),
    Family("pythia_rest_requests", "gauge", "Requests that are being worked on."),
    Family("pythia_rest_requests_max", "gauge", "More are told `overloaded`."),
    Family("pythia_rest_connections", "gauge", "Connections that are open."),
    Family("pythia_rest_connections_max", "gauge", "One more has that closed whose client owes a request for longest."),
    Family(
        "pythia_rest_closed_connections_total",
        "counter",
        "Connections that were closed here, by what for.",
        ("cause",),
    ),
    Family("pythia_rest_transactions", "gauge", "Transactions that are held open for callers."),
    Family("pythia_rest_transactions_max", "gauge", "More are not begun."),
    Family("pythia_rest_transactions_bytes", "gauge", "What they have written, which is held until their commits."),
    Family("pythia_rest_transactions_bytes_max", "gauge", "Once it is passed, nothing more is written."),
    Family(
        "pythia_rest_expired_transactions_total",
        "counter",
        "Transactions that their callers left: rolled back, as they were not used or were open for too long.",
    ),
)
