"""One oracle process as its monitoring sees it: what it counted, and how it stands at this moment.

Runs when somebody asks, never with a transaction. What is not known is left out, so that nobody takes a zero for it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from commit_table.timestamps import milliseconds_of
from tso.decisions.admission import too_many
from tso.decisions.oracle import Impossible
from tso.metering import Metering, Sample
from tso.persistence.pipeline import Pipeline
from tso.settings import Limits
from wire import LIVES_TRANSACTIONS_MAX, Life, LivesReply, LivesRequest, MetricsReply, Role

if TYPE_CHECKING:
    from tso.serving.server import Server

QUEUES = ("requests", "writes", "lookups")
_STARTED_S = time.time()


def metrics(server: Server) -> MetricsReply:
    """All samples of this process, now."""
    status = server.status()
    samples = dict(_samples(server, status.role))
    values = np.fromiter(samples.values(), np.float64, len(samples))
    return MetricsReply(status.role, status.holder, status.address, tuple(samples), values)


def lives(pipeline: Pipeline, request: LivesRequest, metering: Metering) -> LivesReply | Impossible:
    """Which of these transactions live; none lives the longer for it.

    One that is decided to commit has ended here, but not for others before that is on record.
    """
    beyond = too_many(request.start_timestamps.size, LIVES_TRANSACTIONS_MAX)
    if beyond is not None:
        return beyond
    oracle, now_ms = pipeline.oracle, 1000 * metering.clock_s()

    def life(start_timestamp: int) -> Life:
        if (oracle.conflicts.decision_of(start_timestamp) or 0) > 0:
            return Life.HEARD_OF
        return oracle.lives.life(start_timestamp, now_ms)

    return LivesReply(np.array([life(start) for start in request.start_timestamps.tolist()], np.uint8))


def _samples(server: Server, role: Role) -> Iterator[Sample]:
    metering, pipeline = server.metering, server.pipeline
    for each in Role:
        yield f'pythia_role{{role="{each.name.lower()}"}}', each is role
    yield "pythia_process_cpu_seconds_total", time.process_time()
    yield "pythia_process_start_time_seconds", _STARTED_S
    yield "pythia_connections", len(server.connections)
    yield "pythia_receive_buffer_bytes", server.receive_bytes
    yield from metering.samples()
    yield from _transactions(metering, pipeline)
    if pipeline is not None and not pipeline.ended:
        yield from _epoch(pipeline)
        yield from _memory(pipeline, server.limits)
        yield from _lives(pipeline)


def _transactions(metering: Metering, pipeline: Pipeline | None) -> Iterator[Sample]:
    """An epoch's counts are in the metering's once it has ended."""
    under_way = None if pipeline is None or pipeline.ended else pipeline.oracle.counts
    yield "pythia_begins_total", metering.begins + (under_way.begins if under_way else 0)
    yield "pythia_commits_total", metering.commits + (under_way.commits if under_way else 0)


def _epoch(pipeline: Pipeline) -> Iterator[Sample]:
    oracle = pipeline.oracle
    last_ms = milliseconds_of(oracle.range.last)
    yield "pythia_epoch_timestamp_seconds", milliseconds_of(oracle.epoch) / 1000
    yield "pythia_last_timestamp_seconds", last_ms / 1000
    if math.isfinite(remaining_ms := pipeline.lease_remaining_ms()):
        yield "pythia_lease_remaining_seconds", remaining_ms / 1000
    yield "pythia_ceiling_ahead_seconds", (milliseconds_of(oracle.range.ceiling) - last_ms) / 1000
    yield "pythia_watermark_lag_seconds", (last_ms - milliseconds_of(oracle.snapshot)) / 1000
    yield "pythia_low_watermark_age_seconds", (last_ms - milliseconds_of(oracle.conflicts.low_watermark)) / 1000


def _memory(pipeline: Pipeline, limits: Limits) -> Iterator[Sample]:
    conflicts = pipeline.oracle.conflicts
    yield "pythia_conflict_map_entries", len(conflicts)
    yield "pythia_conflict_map_entries_max", limits.conflict_map_entries_max
    yield "pythia_conflict_map_evictions_total", conflicts.evicted
    yield "pythia_remembered_decisions", conflicts.decisions
    yield "pythia_remembered_decisions_max", limits.remembered_decisions_max
    yield "pythia_transactions_in_flight", pipeline.transactions_in_flight
    yield "pythia_transactions_in_flight_max", limits.transactions_in_flight_max
    for queue, length in zip(QUEUES, pipeline.waiting(), strict=True):
        yield f'pythia_queue_length{{queue="{queue}"}}', length


def _lives(pipeline: Pipeline) -> Iterator[Sample]:
    lives, last = pipeline.oracle.lives, pipeline.oracle.range.last
    oldest, horizon = lives.oldest, pipeline.horizon
    yield "pythia_heartbeat_transactions", len(lives)
    yield "pythia_oldest_transaction_age_seconds", (milliseconds_of(last) - milliseconds_of(oldest or last)) / 1000
    if horizon:
        yield "pythia_horizon_timestamp_seconds", milliseconds_of(horizon) / 1000
