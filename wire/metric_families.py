"""What the samples of an oracle process mean: the one list that the oracle counts by, and that text, documentation,
alerts and dashboard are held to.

Names follow Prometheus: base units, ``_total`` for what only grows; of a histogram, ``_bucket``, ``_sum``, ``_count``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]

_HISTOGRAM_PARTS = ("_bucket", "_sum", "_count")


class Family(NamedTuple):
    """The samples of one name. ``labels``: the names of those by which they differ."""

    name: str
    kind: Kind
    text: str
    labels: tuple[str, ...] = ()


FAMILIES: tuple[Family, ...] = (
    Family("pythia_role", "gauge", "1 for the role that the process has, 0 for the others.", ("role",)),
    Family("pythia_process_cpu_seconds_total", "counter", "Processor time that the process has used."),
    Family("pythia_process_start_time_seconds", "gauge", "When the process started, in seconds since 1970."),
    Family("pythia_connections", "gauge", "Connections that are open."),
    Family("pythia_connections_accepted_total", "counter", "Connections that came in, those turned away included."),
    Family("pythia_receive_buffer_bytes", "gauge", "Held of frames that are not whole yet, over all connections."),
    Family("pythia_takeovers_total", "counter", "How often this process became primary."),
    Family(
        "pythia_last_takeover_outage_seconds",
        "gauge",
        "The last takeover: from the lease's last renewal that this process saw, or from its release, to its own first "
        "service. Not there before the first one.",
    ),
    Family(
        "pythia_depositions_total", "counter", "How often this process stopped serving by itself: lease or store lost."
    ),
    Family("pythia_handovers_total", "counter", "How often this process gave its lease back because it was asked to."),
    Family("pythia_begins_total", "counter", "Transactions begun."),
    Family("pythia_commits_total", "counter", "Transactions committed; a repeated request counts once."),
    Family(
        "pythia_commit_answers_total",
        "counter",
        "Transactions whose commit was answered, by the reason that the client was told.",
        ("reason",),
    ),
    Family("pythia_refusals_total", "counter", "Requests of which nothing was done, by the answer.", ("answer",)),
    Family(
        "pythia_begin_seconds",
        "histogram",
        "Per transaction begun: from the first request of its turn of the event loop to the answer.",
    ),
    Family("pythia_commit_decide_seconds", "histogram", "Per transaction: how long deciding over its batch took."),
    Family(
        "pythia_commit_persist_seconds",
        "histogram",
        "Per transaction: how long the write to the commit table took that it was in, repetitions included.",
    ),
    Family("pythia_commit_seconds", "histogram", "Per transaction: from its request to the answer."),
    Family("pythia_decision_transactions", "histogram", "Transactions decided at once; one observation a batch."),
    Family("pythia_write_transactions", "histogram", "Commits of one write to the commit table, one observation each."),
    Family("pythia_commit_table_writes_total", "counter", "Requests to write that the commit table took."),
    Family("pythia_commit_table_write_failures_total", "counter", "Writes that failed; each is repeated or deposes."),
    Family("pythia_commit_table_lookups_total", "counter", "Requests about aborts and outcomes made of the table."),
    Family("pythia_commit_table_lookup_failures_total", "counter", "Those of them that failed."),
    Family("pythia_epoch_timestamp_seconds", "gauge", "When the epoch began, in seconds since 1970; primary only."),
    Family(
        "pythia_last_timestamp_seconds",
        "gauge",
        "The time that the last timestamp given out says, in seconds since 1970; primary only.",
    ),
    Family("pythia_lease_remaining_seconds", "gauge", "For how long the lease holds without another renewal."),
    Family("pythia_ceiling_ahead_seconds", "gauge", "Time that the range of timestamps reaches beyond the last one."),
    Family(
        "pythia_watermark_lag_seconds", "gauge", "How far the durable watermark is behind the last timestamp given out."
    ),
    Family(
        "pythia_low_watermark_age_seconds",
        "gauge",
        "Snapshots older than that are refused as too old, or revalidated by their clients.",
    ),
    Family("pythia_conflict_map_entries", "gauge", "Cells that are remembered."),
    Family("pythia_conflict_map_entries_max", "gauge", "Cells that can be remembered."),
    Family("pythia_conflict_map_evictions_total", "counter", "Cells forgotten to make room, in this epoch."),
    Family("pythia_remembered_decisions", "gauge", "Decided transactions that are remembered."),
    Family("pythia_remembered_decisions_max", "gauge", "Decided transactions that can be remembered."),
    Family("pythia_transactions_in_flight", "gauge", "Transactions decided and not yet answered."),
    Family("pythia_transactions_in_flight_max", "gauge", "More are told that the oracle is overloaded."),
    Family(
        "pythia_queue_length",
        "gauge",
        "What waits: requests for the event loop or a decision, decisions for a writer, transactions for a look-up.",
        ("queue",),
    ),
    Family("pythia_heartbeat_transactions", "gauge", "Open transactions that have sent a heartbeat within a life."),
    Family("pythia_oldest_transaction_age_seconds", "gauge", "Age of the oldest of them; 0: there is none."),
    Family(
        "pythia_horizon_timestamp_seconds",
        "gauge",
        "No living transaction reads below that time, in seconds since 1970; not there while it is not known.",
    ),
)


def family_of(sample: str, families: Sequence[Family] = FAMILIES) -> Family | None:
    """The family of a sample's name without its labels; ``None``: it is in none of these."""
    for family in families:
        part = sample.removeprefix(family.name)
        if not part or (family.kind == "histogram" and part in _HISTOGRAM_PARTS):
            return family
    return None
