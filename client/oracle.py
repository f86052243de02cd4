"""Asking the primary oracle: finds it, re-routes at once, and asks again until it is answered or the time is up.

Three kinds of ends are told apart. *Refused* (NotPrimary, Overloaded, no connection): nothing was done. *Lost* (the
connection broke, the time ran out, or somebody else became primary after the request was sent): it may have been done.
*Answered*. Every request may go out again after either of the first two: a begin, an abort, a heartbeat or a question
is harmless to repeat, and a commit asked again gets the same answer, or TOO_OLD, which is no answer at all. Only where
the time is up does it matter whether a commit was ever lost: ``ReplyLost`` says so.
"""

from __future__ import annotations

import itertools
import logging
import select
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import tenacity

from client.deadline import Deadline
from client.errors import InvalidRequest, NoPrimary, PythiaError
from client.primary import Directory
from client.settings import ClientSettings
from commit_table import Aborted, Committed
from lease.errors import LeaseError
from wire import (
    FRAME_BYTES_MAX,
    HEADER_BYTES,
    AbortRequest,
    BadRequest,
    BeginReply,
    BeginRequest,
    CommitReply,
    CommitRequest,
    FrameDecoder,
    HeartbeatReply,
    HeartbeatRequest,
    Message,
    NotPrimary,
    OutcomeReply,
    OutcomeStatus,
    Overloaded,
    ProtocolError,
    Reason,
    decode,
    encode,
)

_log = logging.getLogger(__name__)

RECEIVE_BYTES = 64 * 2**10
LEAST_WAIT_SECONDS = 0.001
"""A socket's timeout of 0 would mean something else."""
OF_THE_CONNECTION = 0
"""The request id of a refusal that is meant for the connection as a whole: nothing that came over it is done."""
RETRY_WAIT_MS_MAX = 100
"""The longest pause between two looks for a primary: a failover is noticed within this time."""
CONNECT_MS_MAX = 1_000
"""The longest wait for a connection: a host that was cut off says nothing, and another may be primary already."""
LOOK_INTERVAL_MS = 50
"""How often somebody who waits for an answer looks whether another oracle has become primary."""
COMMIT_CELLS_MAX = (FRAME_BYTES_MAX - HEADER_BYTES - 256) // 8
"""The largest write set that fits one frame."""

Answer = TypeVar("Answer", bound=Message)


class ReplyLost(PythiaError):
    """A request was sent and its answer did not come: it may have been done. Never leaves this library."""


def _nothing(*_: object) -> None:
    return None


class _Refused(Exception):
    """Nothing was done; another try may go better. ``pause_ms``: what the oracle asked to wait first."""

    def __init__(self, detail: str, pause_ms: int = 0) -> None:
        super().__init__(detail)
        self.pause_ms = pause_ms


@dataclass(frozen=True, slots=True)
class Decision:
    """An oracle's answer to a commit; ``commit_timestamp`` is 0 where it refused, for ``reason``.

    ``after_loss``: an earlier answer to the same request was lost.
    """

    commit_timestamp: int
    reason: Reason
    after_loss: bool


class OracleClient:
    """The oracle as one process of callers sees it. Safe to call from several threads."""

    def __init__(self, directory: Directory, settings: ClientSettings) -> None:
        self._directory = directory
        self._settings = settings
        self._lock = threading.Lock()
        self._idle: list[_Channel] = []
        self._closed = False
        self._primary: str | None = None
        self._slots = threading.BoundedSemaphore(settings.oracle_connections_max)

    def begin(self, deadline: Deadline | None = None) -> BeginReply:
        """One start timestamp and its snapshot. Raises ``NoPrimary``."""
        limit = deadline or Deadline(self._settings.deadline_ms)
        return self._repeat(lambda: self._ask(BeginRequest(1), BeginReply, limit), limit)

    def abort(self, start_timestamp: int, deadline: Deadline | None = None) -> Committed | Aborted:
        """Have a transaction aborted for good, or learn that it committed. Raises ``NoPrimary``."""
        limit = deadline or Deadline(self._settings.deadline_ms)
        request = AbortRequest(np.array([start_timestamp], np.int64))
        reply = self._repeat(lambda: self._ask(request, OutcomeReply, limit), limit)
        if reply.statuses[0] == OutcomeStatus.COMMITTED:
            return Committed(int(reply.commit_timestamps[0]))
        return Aborted()

    def commit(
        self,
        start_timestamp: int,
        snapshot: int,
        cells: Iterable[int],
        on_sent: Callable[[], None],
        deadline: Deadline,
        *,
        validated: int = 0,
    ) -> Decision:
        """Have a transaction decided over ``cells``, ``COMMIT_CELLS_MAX`` conflict keys at most.

        ``validated``: a later snapshot, up to which the caller has looked for conflicts itself (0: none). ``on_sent``
        is called whenever the request is out. Raises ``NoPrimary`` (nothing was done), ``ReplyLost`` (the time is up
        and it may have committed), ``InvalidRequest``.
        """
        columns = np.fromiter(cells, np.uint64)
        request = CommitRequest(
            np.array([start_timestamp], np.int64),
            np.array([snapshot], np.int64),
            np.array([validated], np.int64),
            np.array([0, columns.size], np.uint32),
            columns,
        )
        lost: list[ReplyLost] = []
        try:
            reply = self._repeat(lambda: self._ask(request, CommitReply, deadline, on_sent, lost.append), deadline)
        except (NoPrimary, InvalidRequest) as error:
            if lost:
                raise lost[-1] from error
            raise
        return Decision(int(reply.commit_timestamps[0]), Reason(int(reply.reasons[0])), after_loss=bool(lost))

    def heartbeat(self, snapshots: Mapping[int, int]) -> dict[int, bool]:
        """Let transactions live on (start timestamp → snapshot); false for those given up before.

        Raises ``NoPrimary``.
        """
        limit = Deadline(self._settings.deadline_ms)
        starts = np.fromiter(snapshots.keys(), np.int64)
        request = HeartbeatRequest(starts, np.fromiter(snapshots.values(), np.int64))
        reply = self._repeat(lambda: self._ask(request, HeartbeatReply, limit), limit)
        return dict(zip(snapshots, map(bool, reply.alive), strict=True))

    def close(self) -> None:
        """Close every idle connection; those in use are closed when they are given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for channel in idle:
            channel.close()

    def _repeat(self, attempt: Callable[[], Answer], deadline: Deadline) -> Answer:
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(_Refused),
            stop=lambda _: deadline.remaining_seconds() <= 0,
            wait=lambda state: min(_pause(state), deadline.remaining_seconds()),
            reraise=True,
        )
        try:
            return retrying(attempt)
        except _Refused as refused:
            raise NoPrimary(deadline.waited_ms, str(refused)) from refused

    def _ask(
        self,
        request: Message,
        answer: type[Answer],
        deadline: Deadline,
        on_sent: Callable[[], None] = _nothing,
        on_lost: Callable[[ReplyLost], None] = _nothing,
    ) -> Answer:
        """One try: a lost answer is as good as a refusal, after ``on_lost`` was told."""
        try:
            return self._exchange(request, answer, on_sent, deadline)
        except ReplyLost as lost:
            on_lost(lost)
            raise _Refused(str(lost)) from lost

    def _exchange(
        self, request: Message, answer: type[Answer], on_sent: Callable[[], None], deadline: Deadline
    ) -> Answer:
        if not self._slots.acquire(timeout=deadline.remaining_seconds()):
            raise _Refused(f"all {self._settings.oracle_connections_max} connections to the oracle are in use")
        try:
            channel = self._channel(deadline)
            try:
                reply = channel.exchange(request, on_sent, self._attempt_deadline(deadline))
            except BaseException:
                channel.close()
                self._primary = None
                raise
            self._give_back(channel)
        finally:
            self._slots.release()
        return self._accept(reply, answer)

    def _attempt_deadline(self, deadline: Deadline) -> Deadline:
        return Deadline(int(1000 * deadline.remaining_seconds(self._settings.request_timeout_ms)))

    def _accept(self, reply: Message, answer: type[Answer]) -> Answer:
        if isinstance(reply, answer):
            return reply
        if isinstance(reply, NotPrimary):
            self._primary = reply.primary_address or None
            raise _Refused(f"the oracle asked is a standby, the primary is {reply.primary_address or 'not known'}")
        if isinstance(reply, Overloaded):
            raise _Refused("the oracle is overloaded", reply.retry_after_ms)
        if isinstance(reply, BadRequest):
            raise InvalidRequest(f"the oracle refused the request: {reply.text}")
        raise InvalidRequest(f"the oracle answered with {type(reply).__name__}: it is of another version")

    def _channel(self, deadline: Deadline) -> _Channel:
        address = self._primary or self._locate(deadline)
        with self._lock:
            usable = [channel for channel in self._idle if channel.address == address and channel.is_open()]
            dropped = [channel for channel in self._idle if channel not in usable]
            channel = usable.pop() if usable else None
            self._idle = usable
        for old in dropped:
            old.close()
        if channel is not None:
            return channel
        try:
            timeout_seconds = deadline.remaining_seconds(min(CONNECT_MS_MAX, self._settings.request_timeout_ms))
            return _Channel(address, timeout_seconds, lambda: self._directory.has_moved(address, LOOK_INTERVAL_MS))
        except (OSError, ValueError) as error:
            self._primary = None
            raise _Refused(f"no connection to the primary at {address}: {error}") from error

    def _locate(self, deadline: Deadline) -> str:
        try:
            address = self._directory.primary(int(1000 * deadline.remaining_seconds(self._settings.request_timeout_ms)))
        except LeaseError as error:
            raise _Refused(f"ZooKeeper does not say who is primary: {error}") from error
        if address is None:
            raise _Refused("no oracle is primary now")
        self._primary = address
        return address

    def _give_back(self, channel: _Channel) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(channel)
                return
        channel.close()


class _Channel:
    """One connection to one oracle, used by one caller at a time."""

    _request_ids = itertools.count(1)

    def __init__(self, address: str, timeout_seconds: float, has_moved: Callable[[], bool]) -> None:
        self.address = address
        self._has_moved = has_moved
        host, _, port = address.rpartition(":")
        bare = host.removeprefix("[").removesuffix("]")
        self._socket = socket.create_connection((bare, int(port)), timeout=max(timeout_seconds, LEAST_WAIT_SECONDS))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._decoder = FrameDecoder()

    def is_open(self) -> bool:
        """Whether the other end has neither closed nor said anything: nothing may come without being asked for."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return not poll.poll(0)

    def exchange(self, request: Message, on_sent: Callable[[], None], deadline: Deadline) -> Message:
        """Send a request and wait for its answer; raises ``ReplyLost`` where none comes in time."""
        request_id = next(self._request_ids)
        try:
            self._socket.settimeout(max(deadline.remaining_seconds(), LEAST_WAIT_SECONDS))
            self._socket.sendall(encode(request, request_id))
            on_sent()
            return self._receive(request_id, deadline)
        except (OSError, ProtocolError) as error:
            raise ReplyLost(f"no answer from the oracle at {self.address}: {error}") from error

    def close(self) -> None:
        self._socket.close()

    def _receive(self, request_id: int, deadline: Deadline) -> Message:
        while (remaining_seconds := deadline.remaining_seconds(LOOK_INTERVAL_MS)) > 0:
            self._socket.settimeout(max(remaining_seconds, LEAST_WAIT_SECONDS))
            try:
                received = self._socket.recv(RECEIVE_BYTES)
            except TimeoutError:
                if self._has_moved():
                    raise ConnectionError("another oracle has become primary") from None
                continue
            if not received:
                raise ConnectionError("the connection was closed")
            for frame in self._decoder.feed(received):
                if frame.request_id in (request_id, OF_THE_CONNECTION):
                    return decode(frame)
                raise ProtocolError(f"an answer to request {frame.request_id} came to request {request_id}")
        raise TimeoutError("it took too long")


def _pause(state: tenacity.RetryCallState) -> float:
    """Seconds until the next try: at once after the first refusal, then growing, and never less than asked for."""
    error = state.outcome.exception() if state.outcome else None
    asked_ms = error.pause_ms if isinstance(error, _Refused) else 0
    grown_ms = 1 << min(state.attempt_number, 10)
    return max(asked_ms, min(RETRY_WAIT_MS_MAX, grown_ms - 2)) / 1000
