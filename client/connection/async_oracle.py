"""The oracle for callers on an event loop: each call returns a future, and all of a loop's go out together.

The same tickets and the same rules as behind ``client.connection.oracle``, which blocks; a call costs a future and a
place in a queue. Who has many transactions at once asks for them as columns: ``begin_many`` and ``commit_many``.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from client.connection.deadline import seconds_of
from client.connection.dispatch import Dispatcher
from client.connection.primary import Directory, SoloDirectory, ZooKeeperDirectory
from client.connection.tickets import (
    BatchTicket,
    BeginTicket,
    Begun,
    Caller,
    Decision,
    Decisions,
    QuestionTicket,
    Ticket,
)
from client.errors import InvalidRequest, PythiaError
from client.metrics import ClientMetrics
from client.settings import ClientSettings
from wire import (
    FRAME_BYTES_MAX,
    HEADER_BYTES,
    PART_CELLS_MAX,
    AbortRequest,
    CommitReply,
    CommitRequest,
    HeartbeatReply,
    HeartbeatRequest,
    LargeCommitRequest,
    LivesRequest,
    Message,
    OutcomeReply,
    OutcomeRequest,
    ProtocolError,
    Reason,
    WriteSetPart,
    WriteSetTaken,
    encode,
)
from wire.columns import CELL, TIMESTAMP, Cells, column

CELLS_MAX = 2**32 - 1
PARTS_UNDER_WAY_MAX = 4
"""Parts of a write set that are sent before the first of them is answered."""

Asked = TypeVar("Asked", bound=Message)
Answer = TypeVar("Answer", bound=Message)


class AsyncOracleClient:
    """The primary oracle as the tasks of one event loop see it. To be made, used and closed on that loop.

    Every future fails with ``NoPrimary`` where the deadline came first and nothing was done, with ``ReplyLost`` where
    it may have been done, and with ``InvalidRequest``. ``deadline_ms``: the settings' unless given. ``metrics`` count
    connections and what was refused as too much, and no transactions: what becomes of those the caller knows.
    """

    def __init__(
        self,
        directory: Directory,
        settings: ClientSettings,
        *,
        metrics: ClientMetrics | None = None,
        close: Callable[[], None] | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        meter = ClientMetrics.of(metrics).meter(settings.root)
        self._dispatcher = Dispatcher(directory, settings, self._loop, meter)
        self._submit = self._dispatcher.submit
        # What every transaction passes through is looked up once.
        self._begin = self._dispatcher.begin
        self._commit = self._dispatcher.commit
        self._close = close

    @classmethod
    def connect(cls, settings: ClientSettings, *, metrics: ClientMetrics | None = None) -> AsyncOracleClient:
        """A client of the installation that ``settings`` name. Connections are opened when they are first needed."""
        if settings.oracle:
            return cls(SoloDirectory(settings.oracle), settings, metrics=metrics)
        directory = ZooKeeperDirectory(settings)
        return cls(directory, settings, metrics=metrics, close=directory.close)

    def begin(self, deadline_ms: int | None = None) -> asyncio.Future[Begun]:
        """Begin one transaction."""
        return self._begin(None if deadline_ms is None else seconds_of(deadline_ms))

    def begin_many(self, count: int, deadline_ms: int | None = None) -> asyncio.Future[Begun]:
        """Begin ``count`` transactions, all at one snapshot; the oracle says how many it begins at once."""
        check_count(count)
        caller = self._loop.create_future()
        self._submit(BeginTicket([caller], *self._times(deadline_ms), count))
        return caller

    def commit(
        self,
        start_timestamp: int,
        snapshot: int,
        cells: Sequence[int],
        *,
        guards: int = 0,
        validated: int = 0,
        deadline_ms: int | None = None,
    ) -> asyncio.Future[Decision]:
        """Have a transaction decided over the conflict keys ``cells``, of which the last ``guards`` are only checked.

        ``validated``: a later snapshot, up to which the caller has looked for conflicts itself (0: none). ``cells`` are
        read when the request goes out, which may be several times: they must not change before the answer.
        """
        limit_seconds = None if deadline_ms is None else seconds_of(deadline_ms)
        return self._commit(start_timestamp, snapshot, validated, cells, guards, limit_seconds)

    def commit_many(self, request: CommitRequest, deadline_ms: int | None = None) -> asyncio.Future[Decisions]:
        """Have many transactions decided, as columns, in their order and in one frame."""
        caller = self._loop.create_future()
        self._submit(batch_ticket(caller, *self._times(deadline_ms), request))
        return caller

    async def commit_large(
        self,
        start_timestamp: int,
        snapshot: int,
        cells: Sequence[int] | Cells,
        *,
        guards: int = 0,
        validated: int = 0,
        deadline_ms: int | None = None,
        on_sent: Callable[[], None] | None = None,
    ) -> Decision:
        """``commit`` for a write set that no frame should have: it goes ahead in parts.

        ``on_sent`` is called whenever the commit itself is out.
        """
        keys = conflict_keys(cells)
        if not 1 <= keys.size <= CELLS_MAX:
            raise InvalidRequest(f"a large write set has 1…{CELLS_MAX:,} conflict keys, not {keys.size:,}")
        until_s = self._times(deadline_ms)[1]
        head = (start_timestamp, snapshot, validated, keys.size)
        _sendable(lambda: WriteSetPart(*head, guards, 0, keys[:PART_CELLS_MAX]))
        taken, lost = 0, None
        try:
            while True:
                reply = await self._send_parts(head, guards, keys, taken, until_s)
                if reply is None:
                    future, ticket = self._question(LargeCommitRequest(*head), until_s, WriteSetTaken, CommitReply)
                    ticket.on_sent = on_sent
                    reply = await future
                    lost = ticket.lost or lost
                if isinstance(reply, CommitReply):
                    return Decision(int(reply.commit_timestamps[0]), Reason(int(reply.reasons[0])), lost is not None)
                taken = reply.cells
        except PythiaError as error:
            if lost is None:
                raise
            # Whatever became of the last request: an earlier one may have been heard, by an oracle that is gone.
            raise lost from error

    async def _send_parts(
        self, head: tuple[int, int, int, int], guards: int, cells: Cells, taken: int, until_s: float
    ) -> CommitReply | None:
        """Bring a write set to the oracle, from ``taken`` on; the answer to the commit if it is decided by that.

        After an answer that shows less than was sent, it goes on from there: another oracle has become primary.
        """
        under_way: deque[tuple[asyncio.Future[WriteSetTaken | CommitReply], int]] = deque()
        goes_on = True
        try:
            while taken < cells.size or under_way:
                if goes_on and taken < cells.size and len(under_way) < PARTS_UNDER_WAY_MAX:
                    part = WriteSetPart(*head, guards, taken, cells[taken : taken + PART_CELLS_MAX])
                    taken += part.cells.size
                    under_way.append((self._question(part, until_s, WriteSetTaken, CommitReply)[0], taken))
                    continue
                future, end = under_way.popleft()
                reply = await future
                if isinstance(reply, CommitReply):
                    return reply
                goes_on = goes_on and reply.cells >= end
                if not goes_on and not under_way:
                    taken, goes_on = reply.cells, True
            return None
        finally:
            for future, _ in under_way:
                future.cancel()

    def abort(self, start_timestamps: Sequence[int], deadline_ms: int | None = None) -> asyncio.Future[OutcomeReply]:
        """Have transactions aborted for good, or learn that they committed; ``lookup_ids_max`` of the oracle at once.

        Raises ``InvalidRequest`` for what no frame can carry.
        """
        return self._ask(request_about(AbortRequest, start_timestamps), deadline_ms, OutcomeReply)

    def outcomes(self, start_timestamps: Sequence[int], deadline_ms: int | None = None) -> asyncio.Future[OutcomeReply]:
        """What became of transactions, as the oracle and its commit table know it. See ``abort``."""
        return self._ask(request_about(OutcomeRequest, start_timestamps), deadline_ms, OutcomeReply)

    def heartbeat(self, snapshots: Mapping[int, int], deadline_ms: int | None = None) -> asyncio.Future[HeartbeatReply]:
        """Let transactions live on (start timestamp → snapshot), ``HEARTBEAT_TRANSACTIONS_MAX`` at once.

        Raises as ``abort``.
        """
        return self._ask(heartbeat_request(snapshots), deadline_ms, HeartbeatReply)

    def submit(self, ticket: Ticket) -> None:
        """Have a ticket of the caller's own settled: what every other call here does."""
        self._submit(ticket)

    def close(self) -> None:
        """Close the connection; what is not answered fails."""
        self._dispatcher.close()
        if self._close is not None:
            self._close()

    def _ask(self, request: Message, deadline_ms: int | None, answer: type[Answer]) -> asyncio.Future[Answer]:
        return self._question(request, self._times(deadline_ms)[1], answer)[0]

    def _question(
        self, request: Message, until_s: float, *answers: type[Message]
    ) -> tuple[asyncio.Future[Any], QuestionTicket]:
        caller = self._loop.create_future()
        ticket = QuestionTicket(caller, time.monotonic(), until_s, request, answers)
        self._submit(ticket)
        return caller, ticket

    def _times(self, deadline_ms: int | None) -> tuple[float, float]:
        return self._dispatcher.times(None if deadline_ms is None else seconds_of(deadline_ms))


def batch_ticket(caller: Caller, asked_s: float, until_s: float, request: CommitRequest) -> BatchTicket:
    """For many commits in one frame. Raises ``InvalidRequest`` where they are too many for one."""
    ticket = BatchTicket(caller, asked_s, until_s, request)
    frame_bytes = HEADER_BYTES + len(ticket.payload)
    if frame_bytes > FRAME_BYTES_MAX:
        raise InvalidRequest(
            f"these commits come to {frame_bytes:,} bytes, one frame takes {FRAME_BYTES_MAX:,}: send fewer at once"
        )
    return ticket


def heartbeat_request(snapshots: Mapping[int, int]) -> HeartbeatRequest:
    """Start timestamp → snapshot, as a request. Raises ``InvalidRequest``."""
    columns = (("start_timestamps", snapshots.keys()), ("snapshots", snapshots.values()))
    return _sendable(lambda: HeartbeatRequest(*(column(name, values, TIMESTAMP) for name, values in columns)))


def request_about(
    kind: type[AbortRequest | LivesRequest | OutcomeRequest], start_timestamps: Sequence[int]
) -> AbortRequest | LivesRequest | OutcomeRequest:
    """A question about these transactions. Raises ``InvalidRequest``."""
    return _sendable(lambda: kind(column("start_timestamps", start_timestamps, TIMESTAMP)))


def conflict_keys(cells: Sequence[int] | Cells) -> Cells:
    """As a column. Raises ``InvalidRequest``."""
    try:
        return column("cells", cells, CELL)
    except ProtocolError as error:
        raise InvalidRequest(error.reason) from error


def _sendable(make: Callable[[], Asked]) -> Asked:
    """A request that can go out. Raises ``InvalidRequest`` at once for one that no frame can carry."""
    try:
        request = make()
        encode(request, 0)
    except ProtocolError as error:
        raise InvalidRequest(error.reason) from error
    return request


def check_count(count: int) -> None:
    """Raise ``InvalidRequest`` unless that many transactions can be asked for."""
    if not isinstance(count, int) or not 1 <= count < 2**32:
        raise InvalidRequest(f"at least one transaction can be begun, and fewer than 2**32, not {count!r}")
