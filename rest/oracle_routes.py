"""Level 1, the oracle as it is: timestamps, and decisions over write sets of the caller's own data.

A commit ends in one of two answers here, too. Where the oracle does not remember a snapshot the transaction is aborted
for good, unless the caller wants to look for conflicts in its data and commit again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

import numpy as np
from fastapi import Depends, Request, Response

from client import Decision, PythiaError, cell_id, row_id
from client.connection.dispatch import COMMIT_CELLS_MAX
from commit_table.timestamps import counter_of, milliseconds_of, wall_time_of
from rest import models
from rest.answering import IdempotencyKey, answered
from rest.problems import Problem, problem_of
from rest.routing import Routes
from rest.services import Services, primary_of
from rest.texts import Encoding, to_bytes
from wire import OutcomeReply, OutcomeStatus, Reason

Primary = Annotated[Services, Depends(primary_of)]


class _Keys(NamedTuple):
    """Conflict keys of a commit, each once: of what was written, and of what else is guarded."""

    written: list[int]
    guarded: list[int]


_REFUSALS: dict[Reason, tuple[str, str]] = {
    Reason.CONFLICT: ("conflict", "another transaction committed to its write set or guards after its snapshot"),
    Reason.ABORTED: ("aborted", "it was aborted before"),
    Reason.TOO_LARGE: ("transaction-too-large", "its write set is larger than the oracle takes"),
    Reason.EXPIRED: ("transaction-expired", "the oracle heard nothing of it for too long"),
}


def add_oracle_routes(routes: Routes) -> None:
    """Everything under /v1/oracle, and timestamps."""
    tags = ["oracle"]
    routes.add("POST", "/v1/oracle/begin", begin, models.Begun, tags=tags)
    routes.add("POST", "/v1/oracle/commit", commit, models.Committed, tags=tags)
    routes.add("POST", "/v1/oracle/commits", commit_batch, models.Decisions, tags=tags)
    routes.add("POST", "/v1/oracle/abort", abort, models.Outcomes, tags=tags)
    routes.add("GET", "/v1/oracle/outcomes/{start_timestamp}", outcome, models.Outcome, tags=tags)
    routes.add("POST", "/v1/oracle/outcomes", outcomes, models.Outcomes, tags=tags)
    routes.add("POST", "/v1/oracle/snapshot", take_snapshot, models.SnapshotTaken, tags=tags)
    routes.add("POST", "/v1/oracle/heartbeat", heartbeat, models.Alive, tags=tags)
    routes.add("GET", "/v1/timestamps/{timestamp}", decode_timestamp, models.Decoded, tags=tags)


async def begin(
    request: Request, services: Primary, body: models.BeginBody | None = None, key: IdempotencyKey = None
) -> Response:
    """Begin transactions, all at one snapshot."""
    count = 1 if body is None else body.count
    _check_number(services, count)

    async def work() -> models.Begun:
        begun = await services.oracle.begin_many(count)
        starts = range(begun.first_start_timestamp, begun.first_start_timestamp + begun.transactions)
        return models.Begun(
            start_timestamps=[str(start) for start in starts], snapshot=str(begun.snapshot), epoch=str(begun.epoch)
        )

    return await answered(request, services, key, 200, work)


async def commit(
    request: Request,
    services: Primary,
    body: models.CommitBody,
    encoding: Encoding = "utf-8",
    key: IdempotencyKey = None,
) -> Response:
    """Have one transaction decided. Repeated, it gets the same answer."""
    services.held_transactions.require_not_others(int(body.start_timestamp))
    keys = _conflict_keys(services, body, encoding)
    return await answered(request, services, key, 200, lambda: _decide(services, body, keys))


async def commit_batch(
    request: Request,
    services: Primary,
    body: models.CommitBatchBody,
    encoding: Encoding = "utf-8",
    key: IdempotencyKey = None,
) -> Response:
    """Have several transactions decided, each by itself; they travel together."""
    _check_number(services, len(body.commits))
    for one in body.commits:
        services.held_transactions.require_not_others(int(one.start_timestamp))
    keys = [_conflict_keys(services, one, encoding) for one in body.commits]

    async def work() -> models.Decisions:
        asked = (_decision_of(services, one, own) for one, own in zip(body.commits, keys, strict=True))
        decisions = await asyncio.gather(*asked)
        unknown = next((one for one in decisions if isinstance(one, models.Refused) and one.outcome == "unknown"), None)
        if unknown is not None and key is not None:  # not an answer to remember
            raise Problem(
                "outcome-unknown",
                f"of transaction {unknown.start_timestamp}, at least",
                retry_after_ms=services.limits.retry_after_ms,
            )
        return models.Decisions(decisions=decisions)

    return await answered(request, services, key, 200, work)


async def abort(services: Primary, body: models.StartTimestampsBody) -> models.Outcomes:
    """Make sure that transactions never commit, or learn that they did."""
    starts = _starts(services, body)
    for start in starts:
        services.held_transactions.require_not_others(start)
    return _outcomes(starts, await services.oracle.abort(starts))


async def outcome(services: Primary, start_timestamp: models.Timestamp) -> models.Outcome:
    """What became of a transaction."""
    starts = [int(start_timestamp)]
    return _outcomes(starts, await services.oracle.outcomes(starts)).outcomes[0]


async def outcomes(services: Primary, body: models.StartTimestampsBody) -> models.Outcomes:
    """What became of several transactions."""
    starts = _starts(services, body)
    return _outcomes(starts, await services.oracle.outcomes(starts))


async def take_snapshot(services: Primary) -> models.SnapshotTaken:
    """A moment that has everything committed by now. Send heartbeats for it while you read at it."""
    begun = await services.oracle.begin()
    return models.SnapshotTaken(
        snapshot=str(begun.snapshot), start_timestamp=str(begun.first_start_timestamp), epoch=str(begun.epoch)
    )


async def heartbeat(services: Primary, body: models.HeartbeatBody) -> models.Alive:
    """Let transactions live on that take longer than the oracle waits for news of them."""
    _check_number(services, len(body.transactions))
    snapshots = {int(beat.start_timestamp): int(beat.snapshot) for beat in body.transactions}
    for start in snapshots:
        services.held_transactions.require_not_others(start)
    reply = await services.oracle.heartbeat(snapshots)
    return models.Alive(alive={str(start): bool(alive) for start, alive in zip(snapshots, reply.alive, strict=True)})


async def decode_timestamp(timestamp: models.Timestamp) -> models.Decoded:
    """When a timestamp was taken. Answered by every process."""
    number = int(timestamp)
    try:
        time = wall_time_of(number).isoformat(timespec="microseconds")
    except OverflowError:
        raise Problem("invalid-request", f"{timestamp} lies behind the year 9999: it is no timestamp") from None
    return models.Decoded(
        timestamp=timestamp, time=time, milliseconds=milliseconds_of(number), counter=counter_of(number)
    )


async def _decision_of(services: Services, body: models.CommitBody, keys: _Keys) -> models.Committed | models.Refused:
    try:
        return await _decide(services, body, keys)
    except PythiaError as error:
        problem = problem_of(error, services.limits.retry_after_ms)
    except Problem as refusal:
        problem = refusal
    return models.Refused(
        outcome=_word_for(problem),
        start_timestamp=body.start_timestamp,
        problem=models.ProblemDocument(**problem.body()),
    )


def _word_for(problem: Problem) -> Literal["aborted", "refused", "unknown"]:
    """What a refused commit of a batch came to."""
    if problem.code == "outcome-unknown":
        return "unknown"
    if problem.more.get("outcome") == "undecided" or "start_timestamp" not in problem.more:
        return "refused"
    return "aborted"


async def _decide(services: Services, body: models.CommitBody, keys: _Keys) -> models.Committed:
    start, snapshot, validated = int(body.start_timestamp), int(body.snapshot), int(body.validated or 0)
    decision = await _ask(services, start, snapshot, keys, validated)
    timestamp = decision.commit_timestamp
    if not timestamp and decision.reason is Reason.TOO_OLD:
        timestamp = await _settle(services, start, keep=body.on_too_old == "keep")
    elif not timestamp:
        code, why = _REFUSALS[decision.reason]
        raise Problem(code, f"transaction {start} was aborted: {why}", start_timestamp=body.start_timestamp)
    return models.Committed(start_timestamp=body.start_timestamp, commit_timestamp=str(timestamp))


async def _ask(services: Services, start: int, snapshot: int, keys: _Keys, validated: int) -> Decision:
    every, guards = [*keys.written, *keys.guarded], len(keys.guarded)
    if len(every) <= COMMIT_CELLS_MAX:
        return await services.oracle.commit(start, snapshot, every, guards=guards, validated=validated)
    large = np.array(every, np.uint64)
    return await services.oracle.commit_large(start, snapshot, large, guards=guards, validated=validated)


async def _settle(services: Services, start: int, *, keep: bool) -> int:
    """The commit timestamp of a transaction that the oracle does not remember; raises ``Problem`` if there is none."""
    ask = services.oracle.outcomes if keep else services.oracle.abort
    reply = await ask([start])
    if reply.statuses[0] == OutcomeStatus.COMMITTED:
        return int(reply.commit_timestamps[0])
    what = "is undecided" if reply.statuses[0] == OutcomeStatus.UNDECIDED else "was aborted"
    raise Problem(
        "snapshot-too-old",
        f"transaction {start} {what}: the oracle does not remember every commit since its snapshot",
        start_timestamp=str(start),
        outcome="undecided" if reply.statuses[0] == OutcomeStatus.UNDECIDED else "aborted",
    )


def _conflict_keys(services: Services, body: models.CommitBody, encoding: Encoding) -> _Keys:
    cells, most = len(body.cells) + len(body.cell_ids), services.limits.cells_per_commit_max
    if cells + len(body.guards) + len(body.guard_ids) > most:
        raise Problem(
            "transaction-too-large",
            f"a commit here has at most {most:,} cells and guards (cells_per_commit_max)",
        )
    written = _keys_of(body.cells, body.cell_ids, encoding)
    return _Keys(written, _keys_of(body.guards, body.guard_ids, encoding))


def _keys_of(cells: Sequence[models.Cell], ids: Sequence[str], encoding: Encoding) -> list[int]:
    keys = [int(one) for one in ids]
    for cell in cells:
        row = to_bytes(cell.row, encoding)
        if cell.column is None:
            keys.append(row_id(cell.table, row))
        else:
            keys.append(cell_id(cell.table, row, to_bytes(cell.column, encoding)))
    return list(dict.fromkeys(keys))


def _starts(services: Services, body: models.StartTimestampsBody) -> list[int]:
    _check_number(services, len(body.start_timestamps))
    return [int(start) for start in body.start_timestamps]


def _check_number(services: Services, transactions: int) -> None:
    most = services.limits.transactions_per_request_max
    if transactions > most:
        raise Problem("invalid-request", f"one request takes {most:,} transactions (transactions_per_request_max)")


def _outcomes(starts: Sequence[int], reply: OutcomeReply) -> models.Outcomes:
    answers = zip(starts, reply.statuses, reply.commit_timestamps, strict=True)
    return models.Outcomes(outcomes=[_outcome(start, int(status), int(time)) for start, status, time in answers])


def _outcome(start: int, status: int, commit_timestamp: int) -> models.Outcome:
    if status == OutcomeStatus.COMMITTED:
        return models.Outcome(start_timestamp=str(start), outcome="committed", commit_timestamp=str(commit_timestamp))
    return models.Outcome(
        start_timestamp=str(start),
        outcome="aborted" if status == OutcomeStatus.ABORTED else "undecided",
        commit_timestamp=None,
    )
