"""The oracle for callers that block: threads of an application, Spark tasks.

A thread of the library's own runs an event loop with everything that ``client.connection.async_oracle`` has; callers
put tickets in its way and sleep until they are settled. So all threads of a process share one connection and its
frames, and somebody always listens: when another oracle becomes primary, when an answer is late, when a caller's time
is up. A forked child starts a thread and a connection of its own.
"""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import uvloop

from client.cells import ConflictKeys
from client.connection.async_oracle import (
    AsyncOracleClient,
    batch_ticket,
    check_count,
    conflict_keys,
    heartbeat_request,
    request_about,
)
from client.connection.deadline import Deadline
from client.connection.dispatch import COMMIT_CELLS_MAX
from client.connection.primary import Directory
from client.connection.tickets import (
    BatchTicket,
    BeginTicket,
    Begun,
    CommitTicket,
    Decision,
    Decisions,
    QuestionTicket,
    Ticket,
)
from client.errors import CLOSED, InvalidRequest, NoPrimary, NoThreadFree, ReplyLost
from client.metrics import ClientMetrics
from client.settings import ClientSettings
from commit_table import Aborted, Committed
from store.forking import leave_at_fork
from wire import (
    LIVES_TRANSACTIONS_MAX,
    AbortRequest,
    CommitRequest,
    HeartbeatReply,
    Life,
    LivesReply,
    LivesRequest,
    Message,
    OutcomeReply,
    OutcomeRequest,
    OutcomeStatus,
    Role,
    StatusReply,
    StatusRequest,
)
from wire.packing import CommitArguments

GRACE_SECONDS: Final = 5.0
"""A ticket is settled when its time is up; a caller waits for so much longer at most."""

Answer = TypeVar("Answer", bound=Message)


class OracleClient:
    """The oracle as the threads of one process see it. Thread-safe."""

    def __init__(self, directory: Directory, settings: ClientSettings, metrics: ClientMetrics | None = None) -> None:
        self._directory = directory
        self._settings = settings
        self._metrics = metrics
        self._lock = threading.Lock()
        self._thread: _LoopThread | None = None
        self._finalizer: weakref.finalize[[], OracleClient] | None = None
        self._closed = False
        leave_at_fork(self)

    def begin(self, deadline: Deadline | None = None) -> Begun:
        """One start timestamp and its snapshot. Raises ``NoPrimary``."""
        return self.begin_many(1, deadline)

    def begin_many(self, count: int, deadline: Deadline | None = None) -> Begun:
        """``count`` start timestamps in a row, all at one snapshot; the oracle says how many it begins at once.

        Raises ``NoPrimary``, ``InvalidRequest``.
        """
        check_count(count)

        def ticket(waiter: _Waiter, now_s: float, until_s: float) -> BeginTicket:
            return BeginTicket([waiter], now_s, until_s, count)

        begun: Begun = self._answer(ticket, deadline)
        return begun

    def abort(self, start_timestamp: int, deadline: Deadline | None = None) -> Committed | Aborted:
        """Have a transaction aborted for good, or learn that it committed.

        Raises ``NoPrimary``, and ``InvalidRequest`` for what is no timestamp.
        """
        reply = self._question(request_about(AbortRequest, [start_timestamp]), OutcomeReply, deadline)
        if reply.statuses[0] == OutcomeStatus.COMMITTED:
            return Committed(int(reply.commit_timestamps[0]))
        return Aborted()

    def outcomes(self, start_timestamps: Sequence[int], deadline: Deadline | None = None) -> OutcomeReply:
        """What became of transactions, ``lookup_ids_max`` of the oracle at once. Raises as ``abort``."""
        return self._question(request_about(OutcomeRequest, start_timestamps), OutcomeReply, deadline)

    def commit(
        self,
        start_timestamp: int,
        snapshot: int,
        cells: ConflictKeys | Sequence[int],
        on_sent: Callable[[], None] | None = None,
        deadline: Deadline | None = None,
        *,
        guards: Sequence[int] = (),
        validated: int = 0,
    ) -> Decision:
        """Have a transaction decided over the conflict keys ``cells``, and ``guards``, which are only checked.

        ``validated``: a later snapshot, up to which the caller has looked for conflicts itself (0: none). ``on_sent``
        is called, in the calling thread, whenever the request is out. Raises ``NoPrimary`` (nothing was done),
        ``ReplyLost`` (the time is up and it may have committed), ``InvalidRequest``.
        """
        if len(cells) + len(guards) > COMMIT_CELLS_MAX:
            everything = np.concatenate([conflict_keys(cells), np.array(guards, np.uint64)])
            return self._commit_large(start_timestamp, snapshot, everything, len(guards), on_sent, deadline, validated)

        keys = [*(cells.tolist() if isinstance(cells, np.ndarray) else cells), *guards]
        arguments = CommitArguments.of_one(start_timestamp, snapshot, validated, keys, len(guards))

        def ticket(waiter: _Waiter, now_s: float, until_s: float) -> CommitTicket:
            return CommitTicket([waiter], now_s, until_s, arguments, len(keys))

        decision: Decision = self._answer(ticket, deadline, on_sent)
        return decision

    def commit_many(self, request: CommitRequest, deadline: Deadline | None = None) -> Decisions:
        """Have many transactions decided, as columns, in their order and in one frame. Raises as ``commit``."""

        def ticket(waiter: _Waiter, now_s: float, until_s: float) -> BatchTicket:
            return batch_ticket(waiter, now_s, until_s, request)

        decisions: Decisions = self._answer(ticket, deadline)
        return decisions

    def _commit_large(
        self,
        start_timestamp: int,
        snapshot: int,
        cells: ConflictKeys,
        guards: int,
        on_sent: Callable[[], None] | None,
        deadline: Deadline | None,
        validated: int,
    ) -> Decision:
        waiter, thread, left_seconds = _Waiter(), self._running(), self._left_seconds(deadline)
        limit_ms = int(1000 * left_seconds)
        note_sent = None if on_sent is None else waiter.note_sent

        def begin(client: AsyncOracleClient) -> Coroutine[Any, Any, Decision]:
            return client.commit_large(
                start_timestamp,
                snapshot,
                cells,
                guards=guards,
                validated=validated,
                deadline_ms=limit_ms,
                on_sent=note_sent,
            )

        thread.submit(_Errand(begin, waiter))
        decision = waiter.wait(left_seconds + GRACE_SECONDS, on_sent)
        assert isinstance(decision, Decision)
        return decision

    def heartbeat(self, snapshots: Mapping[int, int]) -> dict[int, bool]:
        """Let transactions live on (start timestamp → snapshot); false for those given up before.

        Raises ``NoPrimary``, and ``InvalidRequest`` for more than ``HEARTBEAT_TRANSACTIONS_MAX`` of them.
        """
        reply = self._question(heartbeat_request(snapshots), HeartbeatReply, None)
        return dict(zip(snapshots, map(bool, reply.alive), strict=True))

    def lives(self, start_timestamps: Sequence[int], deadline: Deadline | None = None) -> list[Life]:
        """Which of these transactions live, by what the primary heard of them. Raises as ``abort``."""
        found: list[Life] = []
        for first in range(0, len(start_timestamps), LIVES_TRANSACTIONS_MAX):
            request = request_about(LivesRequest, start_timestamps[first : first + LIVES_TRANSACTIONS_MAX])
            found += [Life(int(life)) for life in self._question(request, LivesReply, deadline).lives]
        return found

    def status(self) -> StatusReply:
        """How the process is that is primary now. Raises ``NoPrimary``."""
        reply = self._question(StatusRequest(), StatusReply, None)
        if reply.role != Role.PRIMARY:
            raise NoPrimary(0, f"the oracle at {reply.address} has just ceased to be primary")
        return reply

    def close(self) -> None:
        """Close the connection; whoever still waits is told so."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()

    def leave_to_parent(self) -> None:
        """See ``Leaving``. The connection's descriptor stays open until the child ends: no loop runs to close it."""
        self._lock = threading.Lock()
        self._thread = None
        if self._finalizer is not None:
            self._finalizer.detach()  # it would wake the parent's loop: what wakes it is shared, too

    def _question(self, request: Message, answer: type[Answer], deadline: Deadline | None) -> Answer:
        def ticket(waiter: _Waiter, now_s: float, until_s: float) -> QuestionTicket:
            return QuestionTicket(waiter, now_s, until_s, request, (answer,))

        reply: Answer = self._answer(ticket, deadline)
        return reply

    def _answer(
        self,
        make: Callable[[_Waiter, float, float], Ticket],
        deadline: Deadline | None,
        on_sent: Callable[[], None] | None = None,
    ) -> Any:
        left_seconds = self._left_seconds(deadline)
        waiter, thread = _Waiter(), self._running()
        now_s = time.monotonic()
        ticket = make(waiter, now_s, now_s + left_seconds)
        if on_sent is not None:
            ticket.on_sent = waiter.note_sent
        thread.submit(ticket)
        try:
            return waiter.wait(left_seconds + GRACE_SECONDS, on_sent)
        except ReplyLost as error:
            if isinstance(ticket, CommitTicket | BatchTicket):
                raise
            raise NoPrimary(int(1000 * (time.monotonic() - now_s)), str(error)) from error

    def _left_seconds(self, deadline: Deadline | None) -> float:
        return self._settings.deadline_ms / 1000 if deadline is None else deadline.remaining_seconds()

    def _running(self) -> _LoopThread:
        thread = self._thread
        if thread is not None:
            return thread
        with self._lock:
            if self._closed:
                raise InvalidRequest(CLOSED)
            if self._thread is None:
                try:
                    self._thread = _LoopThread(self._directory, self._settings, self._metrics)
                except (OSError, RuntimeError) as error:  # too many files are open, or no thread is left
                    raise NoThreadFree(f"no thread could be had to ask the oracle with: {error}") from error
                self._finalizer = weakref.finalize(self, self._thread.stop)
            return self._thread


_SENT: Final = object()


class _Waiter:
    """Where one caller sleeps until it is told: a ticket's ``Caller``, for a thread."""

    __slots__ = ("_lock", "_notes", "_told")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._notes: deque[object] = deque()
        self._told = False

    def done(self) -> bool:
        """See ``Caller``."""
        return self._told

    def set_result(self, answer: object, /) -> None:
        """See ``Caller``."""
        self._told = True
        self._note(answer)

    def set_exception(self, error: Exception, /) -> None:
        """See ``Caller``."""
        self._told = True
        self._note(error)

    def note_sent(self) -> None:
        """On the event loop: the request is out."""
        self._note(_SENT)

    def _note(self, note: object) -> None:
        """Wake the caller. Only the loop's thread releases, only the caller's acquires."""
        self._notes.append(note)
        if self._lock.locked():
            self._lock.release()

    def wait(self, limit_seconds: float, on_sent: Callable[[], None] | None) -> object:
        """The answer, or what there is instead, raised. ``on_sent`` is called whenever the request went out."""
        while self._lock.acquire(timeout=limit_seconds):
            while self._notes:
                note = self._notes.popleft()
                if note is _SENT:
                    assert on_sent is not None
                    on_sent()
                elif isinstance(note, Exception):
                    raise note
                else:
                    return note
        raise ReplyLost("the library's own thread does not answer")


class _Errand:
    """A coroutine for the library's own event loop; ``waiter`` gets what it returns or raises."""

    def __init__(self, begin: Callable[[AsyncOracleClient], Coroutine[Any, Any, object]], waiter: _Waiter) -> None:
        self._begin = begin
        self._waiter = waiter

    async def run(self, client: AsyncOracleClient) -> None:
        """Do it."""
        try:
            self._waiter.set_result(await self._begin(client))
        except Exception as error:
            self._waiter.set_exception(error)

    def give_up(self) -> None:
        """There is no event loop to do it on."""
        self._waiter.set_exception(InvalidRequest(CLOSED))


class _LoopThread:
    """A thread with an event loop and the connection to the oracle. It holds nothing of whoever uses it."""

    def __init__(self, directory: Directory, settings: ClientSettings, metrics: ClientMetrics | None) -> None:
        self.loop = new_event_loop()
        self._directory = directory
        self._settings = settings
        self._metrics = metrics
        self._incoming: deque[Ticket | _Errand] = deque()
        self._errands: set[asyncio.Task[None]] = set()
        self._woken = False
        self._client: AsyncOracleClient | None = None
        self._stopped = asyncio.Event()
        try:
            threading.Thread(target=self._run, name="pythia-oracle", daemon=True).start()
        except RuntimeError:
            self.loop.close()
            raise

    def submit(self, wanted: Ticket | _Errand) -> None:
        """From any thread: have a request answered, or an errand done."""
        self._incoming.append(wanted)
        try:
            if not self._woken:
                self._woken = True
                self._wake(self._take_in)
        except BaseException:  # an interrupt: all who come later would take the loop for woken, and wait in vain
            self._wake(self._take_in)
            raise

    def stop(self) -> None:
        """From any thread: close the connection and end."""
        self._wake(self._stopped.set)

    def _wake(self, call: Callable[[], None]) -> None:
        try:
            self.loop.call_soon_threadsafe(call)
        except RuntimeError:  # the loop has been closed: by another call, or with the interpreter
            self._refuse_all()

    def _take_in(self) -> None:
        self._woken = False
        if self._client is None:
            return  # the loop has just begun to run: what is there is taken in when there is a client
        while self._incoming:
            wanted = self._incoming.popleft()
            if isinstance(wanted, Ticket):
                self._client.submit(wanted)
            else:
                errand = self.loop.create_task(wanted.run(self._client))
                self._errands.add(errand)
                errand.add_done_callback(self._errands.discard)

    def _run(self) -> None:
        try:
            self.loop.run_until_complete(self._serve())
        finally:
            self.loop.close()
            self._refuse_all()

    async def _serve(self) -> None:
        self._client = AsyncOracleClient(self._directory, self._settings, metrics=self._metrics)
        self._take_in()
        await self._stopped.wait()
        self._client.close()
        self._take_in()
        while self._errands:  # each ends with its next question
            await asyncio.wait(self._errands)
        await asyncio.sleep(0)  # the connection's own farewell

    def _refuse_all(self) -> None:
        """The loop is closed. Who comes from now on wakes it again, and meets that; who came before is told here."""
        self._woken = False
        while self._incoming:
            wanted = self._incoming.popleft()
            if isinstance(wanted, Ticket):
                wanted.fail(wanted.doubt() or InvalidRequest(CLOSED))
            else:
                wanted.give_up()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """An event loop for the library's own thread: libuv's, which takes half of asyncio's own time a callback."""
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
