"""The one connection of a process to the primary oracle: found, kept, and left for another without losing a request.

Three kinds of ends are told apart. *Refused* (NotPrimary, Overloaded, no connection): nothing was done. *Lost* (the
connection broke, the time ran out, or somebody else became primary after the request was sent): it may have been done.
*Answered*. Every request may go out again after either of the first two: a begin, an abort, a heartbeat or a question
is harmless to repeat, and a commit asked again gets the same answer, or TOO_OLD, which is no answer at all. So requests
ride out a change of the primary, until they are answered or their callers stop waiting.

Everything here runs on one event loop; only the directory's calls, which block, run in threads of their own.
"""

from __future__ import annotations

import asyncio
import logging
import math
import ssl
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, SupportsIndex

from access import BadCredentials
from access.tls import what_failed
from client.connection.aside import call_aside
from client.connection.credentials import credentials_of
from client.connection.exchange import FRAME_CALLERS_MIN, FRAME_CELLS_MAX, Queue
from client.connection.line import Line
from client.connection.pauses import Pause
from client.connection.primary import Directory
from client.connection.tickets import BeginTicket, Begun, CommitTicket, Decision, Ticket
from client.errors import CLOSED, AccessDenied, InvalidRequest, UpgradeNeeded
from client.metrics import Meter
from client.settings import ClientSettings
from lease.errors import LeaseError, LevelRefused
from wire import Greeting, HelloReply, NotAllowed, NotAllowedCode, NotPrimary, Overloaded, ProtocolError
from wire.packing import CommitArguments

_log = logging.getLogger(__name__)

CONNECT_MS_MAX: Final = 1_000
"""The longest wait for a connection: a host that was cut off says nothing, and another may be primary already."""
LOOK_INTERVAL_MS: Final = 50
"""How often it is looked whether an answer is late; from that age on, whether another oracle has become primary."""
MOVED_LOOK_MS: Final = 1_000
"""How often it is looked whether another oracle has become primary while answers come in time; and for how long at most
one look waits for ZooKeeper, which may be far away or busy."""
DIRECTORY_THREAD: Final = "pythia-directory"
"""Up to two of them: one looks for a primary, one looks whether there is another."""
RECEIVE_BYTES: Final = 256 * 2**10
COMMIT_CELLS_MAX: Final = FRAME_CELLS_MAX
"""Conflict keys of one transaction in a commit request; more of them go ahead in parts."""
NOBODY: Final = "no oracle is primary now"
OVERLOADED: Final = "the oracle is overloaded"

_BEGINS: Final = BeginTicket.lane
_COMMITS: Final = CommitTicket.lane


class Dispatcher:
    """Brings tickets to whoever is primary. For the thread of its event loop only."""

    def __init__(
        self, directory: Directory, settings: ClientSettings, loop: asyncio.AbstractEventLoop, meter: Meter
    ) -> None:
        self.receive_buffer = memoryview(bytearray(RECEIVE_BYTES))
        """What came last, over any line: it is taken out before anything else is received."""
        self._open_begin: BeginTicket | None = None
        self._open_commit: CommitTicket | None = None
        """Tickets of this turn of the event loop, which more callers may still join."""
        self._directory = directory
        self._settings = settings
        self._meter = meter
        self.loop = loop
        self._create_future = loop.create_future
        self.queue = Queue()
        self._waiting = self.queue.waiting
        self._requests_max = settings.oracle_requests_max
        self._deadline_seconds = settings.deadline_ms / 1000
        self._line: Line | None = None
        self._retired: set[Line] = set()
        self._address: str | None = None
        self._nobody = f"{NOBODY} of the installation {settings.root} in ZooKeeper at {settings.zookeeper}"
        self._why = (
            f"the oracle at {settings.oracle} has not answered yet"
            if settings.oracle
            else f"ZooKeeper at {settings.zookeeper} has not told yet who it is: does it run, and there?"
        )
        self._all_paused = Pause()
        self._flushing = False
        self._connecting: asyncio.Task[None] | None = None
        self._watching: asyncio.TimerHandle | None = None
        self._looking: asyncio.Future[bool] | None = None
        self._look_again_s = 0.0
        self._closed = False

    def begin(self, limit_seconds: float | None) -> asyncio.Future[Begun]:
        """Begin one transaction for a caller who waits for so long; ``None``: as the settings say.

        Who asks in the same turn of the event loop, and has no limit of its own, shares a ticket with the others.
        """
        caller: asyncio.Future[Begun] = self._create_future()
        ticket = self._open_begin
        if ticket is None or limit_seconds is not None or not self._may_join(ticket):
            ticket = BeginTicket([caller], *self.times(limit_seconds), 1)
            waits = self.submit(ticket)
            if limit_seconds is None:
                self._open_begin = ticket if waits else None
        else:
            ticket.callers.append(caller)
            self._waiting[_BEGINS] += 1
        return caller

    def commit(
        self,
        start_timestamp: SupportsIndex,
        snapshot: SupportsIndex,
        validated: SupportsIndex,
        write_set: Sequence[SupportsIndex],
        guards: SupportsIndex,
        limit_seconds: float | None,
    ) -> asyncio.Future[Decision]:
        """Have one transaction decided for a caller. See ``begin``, and ``CommitArguments`` for the rest.

        Raises ``InvalidRequest`` for a write set that is to go ahead in parts.
        """
        cells = len(write_set)
        caller: asyncio.Future[Decision] = self._create_future()
        ticket = self._open_commit
        if (
            ticket is None
            or limit_seconds is not None
            or not self._may_join(ticket)
            or ticket.cells + cells > FRAME_CELLS_MAX
        ):
            if cells > COMMIT_CELLS_MAX:
                raise InvalidRequest(
                    f"one commit request takes {COMMIT_CELLS_MAX:,} conflict keys, not {cells:,}: use commit_large"
                )
            arguments = CommitArguments.of_one(start_timestamp, snapshot, validated, write_set, guards)
            ticket = CommitTicket([caller], *self.times(limit_seconds), arguments, cells)
            waits = self.submit(ticket)
            if limit_seconds is None:
                self._open_commit = ticket if waits else None
        else:
            ticket.callers.append(caller)
            self._waiting[_COMMITS] += 1
            ticket.arguments.add(start_timestamp, snapshot, validated, write_set, guards)
            ticket.cells += cells
        return caller

    def times(self, limit_seconds: float | None) -> tuple[float, float]:
        """Now on the monotonic clock, and when the time of somebody is up who waits for so long."""
        now_s = time.monotonic()  # not the event loop's, which may keep that of its last turn
        return now_s, now_s + (self._deadline_seconds if limit_seconds is None else limit_seconds)

    def submit(self, ticket: Ticket) -> bool:
        """Have a request answered: its callers are told sooner or later, by its ``until_s`` and a moment at most.

        Returns whether it waits to be sent, and more callers may join it in this turn of the event loop.
        """
        if self._closed:
            ticket.fail(InvalidRequest(CLOSED))
        elif self.queue.waiting[ticket.lane] >= self._requests_max:
            ticket.fail(
                InvalidRequest(
                    f"{self._requests_max} requests of this kind wait to be sent to the oracle, as many as "
                    "oracle_requests_max allows: wait for answers before asking for more"
                )
            )
        else:
            self.queue.add(ticket)
            self._flush_soon()
            return True
        return False

    def close(self) -> None:
        """Close the connection. What is not answered is given up."""
        self._closed = True
        self._let_nobody_join()
        self._why = "the client was closed meanwhile"
        now_s = time.monotonic()
        for line in self._lines():
            for ticket in line.exchange.lose(self._why):
                ticket.give_up(now_s, self._why)
            line.abort()
        for ticket in self.queue.take_overdue(math.inf):
            ticket.give_up(now_s, self._why)
        for pending in (self._connecting, self._watching):
            if pending is not None:
                pending.cancel()

    def _may_join(self, ticket: BeginTicket | CommitTicket) -> bool:
        """Whether there is room for one more: how much there is is asked when the second caller comes."""
        callers = len(ticket.callers)
        if callers == 1 == ticket.callers_max:
            room = self._requests_max - self._waiting[ticket.lane]
            share = FRAME_CALLERS_MIN if self._line is None else self._line.exchange.share()
            ticket.callers_max = min(share, 1 + room)
        return callers < ticket.callers_max

    def _lines(self) -> list[Line]:
        return [*self._retired, *([] if self._line is None else [self._line])]

    def _let_nobody_join(self) -> None:
        """What waits is about to be sent, or given up."""
        self._open_begin = self._open_commit = None

    def _flush_soon(self) -> None:
        if self._flushing:
            return
        self._flushing = True
        self.loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        self._let_nobody_join()
        if self._closed or not self.queue:
            return
        now_s = time.monotonic()
        if self._watching is None:
            self._watch()
        if now_s < self._all_paused.until_s:
            return  # the watch will be back
        if self._line is None:
            self._connect_soon()
            return
        data = self._line.exchange.to_send(now_s)
        if data:
            self._line.send(data)
            for on_sent in self._line.exchange.take_untold():
                self._tell(on_sent)

    def _tell(self, on_sent: Callable[[], None]) -> None:
        """At once: in the next turn of the event loop the answer may come first. Others do not suffer if it raises."""
        try:
            on_sent()
        except Exception as error:
            self.loop.call_exception_handler({"message": "on_sent of a request raised", "exception": error})

    def _connect_soon(self) -> None:
        if self._connecting is None:
            self._connecting = self.loop.create_task(self._connect())

    async def _connect(self) -> None:
        """One try to get a line to the primary. The next comes by the watch, at once or after a pause."""
        try:
            address = self._address or await self._locate()
            if address is None:
                self._pause(self._why_nobody())
                return
            self._address = address
            limit_seconds = min(CONNECT_MS_MAX, self._settings.request_timeout_ms) / 1000
            async with asyncio.timeout(limit_seconds):
                await self._open(address)
        except LevelRefused as error:
            self._deny(UpgradeNeeded(str(error)))
        except (AccessDenied, UpgradeNeeded) as error:
            self._deny(error)
        except LeaseError as error:
            self._pause(f"ZooKeeper does not say who is primary: {error}")
        except (OSError, ValueError) as error:
            self._pause(f"no connection to the primary at {self._address}: {str(error) or 'it does not answer'}")
        except Exception as error:  # such as no thread to look for it with: without a pause it would be tried on and on
            self._puzzled(error)
        finally:
            self._connecting = None
            self._flush_soon()

    def _puzzled(self, error: Exception) -> None:
        """What nobody expected: it may pass. Logged whole where it is not what came the last time."""
        why = f"no primary could be looked for: {error!r}"
        if why != self._why:
            _log.error("%s", why, exc_info=error)
        self._pause(why)

    async def _open(self, address: str) -> None:
        """Connect and say hello.

        Raises ``AccessDenied`` or ``UpgradeNeeded`` where another try would not help, ``OSError`` otherwise.
        """
        host, _, port = address.rpartition(":")
        bare = host.removeprefix("[").removesuffix("]")
        credentials = credentials_of(self._settings)
        try:
            line, tls = Line(self, address, Greeting(credentials.token())), credentials.tls()
        except (BadCredentials, ProtocolError) as error:
            raise AccessDenied(str(error)) from error
        name = None if tls is None else credentials.server_name(bare)
        try:
            await self.loop.create_connection(lambda: line, bare, int(port), ssl=tls, server_hostname=name)
            answer = await line.welcome
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError) as error:
            line.abort()
            raise ConnectionError(f"it hung up while TLS was agreed on: {error}") from error
        except ssl.SSLError as error:
            line.abort()
            raise AccessDenied(f"the oracle at {address}: {what_failed(error)}") from error
        except BaseException:
            line.abort()
            raise
        if isinstance(answer, HelloReply):
            self._connected(line)
            return
        line.abort()
        if isinstance(answer, Overloaded):
            self._meter.overloaded()
            self._pause(OVERLOADED, answer.retry_after_ms)
        elif isinstance(answer, NotAllowed) and answer.code is NotAllowedCode.NO_COMMON_VERSION:
            raise UpgradeNeeded(f"the oracle at {address} cannot serve this client: {answer.text}")
        elif isinstance(answer, NotAllowed) and answer.code is not NotAllowedCode.TOO_MANY_CONNECTIONS:
            raise AccessDenied(f"the oracle at {address} does not let this client in: {answer.text}")
        else:
            raise ConnectionError(answer.text)

    def _deny(self, error: AccessDenied | UpgradeNeeded) -> None:
        """Waiting does not help: all who wait are told at once."""
        self._why = str(error)
        self._address = None
        self._let_nobody_join()
        for ticket in self.queue.take_overdue(math.inf):
            ticket.fail(ticket.doubt() or error)

    def _connected(self, line: Line) -> None:
        if self._closed:
            line.abort()
            return
        self._line = line
        self._meter.connected()
        self._flush_soon()

    def _why_nobody(self) -> str:
        """That there is no primary, and what was wrong before that; not the same over again."""
        if not self._all_paused.refusals:
            return self._nobody
        return self._why if self._why.startswith(NOBODY) else f"{self._nobody} ({self._why})"

    async def _locate(self) -> str | None:
        primary = partial(self._directory.primary, self._settings.request_timeout_ms)
        return await call_aside(self.loop, primary, DIRECTORY_THREAD)

    def _pause(self, why: str, asked_ms: int = 0) -> None:
        """Nothing at all goes out for a while."""
        self._why = why
        self._address = None if asked_ms == 0 else self._address
        self._all_paused.refused(time.monotonic(), asked_ms)
        self._watch()

    # What lines report.

    def answered(self, line: Line) -> None:
        """Answers came over a line. One that is still ours is a primary's: what was refused before is history."""
        if line is self._line:
            self._all_paused.refusals = 0
        self._flush_soon()  # after those who were answered have gone on, in the same turn of the event loop

    def refused(self, line: Line, tickets: Sequence[Ticket], refusal: NotPrimary | Overloaded) -> None:
        """Nothing was done of these; they go out again, to another oracle or later."""
        self.queue.add_first(ticket for ticket in tickets if ticket.is_awaited)
        if isinstance(refusal, Overloaded):
            self._meter.overloaded()
            self._why = OVERLOADED
            self.queue.pauses[tickets[0].lane].refused(time.monotonic(), refusal.retry_after_ms)
            self._watch()
            return
        if self._line is line:
            # It may still answer what it had taken in before: it is left when nothing of that is under way.
            self.forget(line)
            self._pause(f"the oracle asked is a standby, the primary is {refusal.primary_address or 'not known'}")
            self._address = refusal.primary_address or None
        self.leave_if_idle(line)

    def leave_if_idle(self, line: Line) -> None:
        """Close a line that nobody needs any more."""
        if line in self._retired and not line.exchange:
            line.abort()

    def forget(self, line: Line) -> None:
        """A line is being given up: nothing is sent over it any more."""
        self._retired.add(line)
        if self._line is line:
            self._line = None
            self._address = None

    def lost(self, line: Line, reason: str) -> None:
        """A line is gone. What was under way on it may have been done, and is asked again."""
        self.forget(line)
        self._retired.discard(line)
        lost = line.exchange.lose(f"no answer from the oracle at {line.address}: {reason}")
        if self._closed:
            return
        if lost:
            self._why = str(lost[0].lost)
            self.queue.add_first(lost)
        if not line.has_answered:  # who takes connections and ends them would be asked in a whirl
            self._pause(self._why if lost else f"the oracle at {line.address} hung up: {reason}")
        if self.queue:
            self._flush_soon()

    # Looking after what waits.

    def _watch(self) -> None:
        if self._watching is None and not self._closed:
            now_s = time.monotonic()
            waits = [pause.until_s - now_s for pause in (self._all_paused, *self.queue.pauses) if pause.until_s > now_s]
            self._watching = self.loop.call_later(min([LOOK_INTERVAL_MS / 1000, *waits]), self._look)

    def _look(self) -> None:
        self._watching = None
        self._let_nobody_join()
        now_s = time.monotonic()
        self._give_up_overdue(now_s)
        for line in self._lines():
            if line.late_ms(now_s) >= self._settings.request_timeout_ms:
                self._leave(line, "it took too long")
        current = self._line
        if current is not None and self._looking is None and self._is_time_to_look(current, now_s):
            self._look_again_s = now_s + MOVED_LOOK_MS / 1000
            self._ask_whether_moved(current)
        if self.queue:
            self._flush_soon()
        if self.queue or any(line.exchange for line in self._lines()):
            self._watch()

    def _is_time_to_look(self, line: Line, now_s: float) -> bool:
        """An answer that is late may never come; but somebody else can be primary though answers come in time."""
        return line.late_ms(now_s) >= LOOK_INTERVAL_MS or now_s >= self._look_again_s

    def _leave(self, line: Line, reason: str) -> None:
        line.leave(reason)
        self.forget(line)

    def _give_up_overdue(self, now_s: float) -> None:
        for ticket in self.queue.take_overdue(now_s):
            ticket.give_up(now_s, self._why)
        for line in self._lines():
            for ticket in line.exchange.overdue(now_s):
                ticket.lost = ticket.lost or line.no_answer()
                ticket.give_up(now_s, self._why)

    def _ask_whether_moved(self, line: Line) -> None:
        """In a thread: as a rule nothing has changed, and it is cheap; but it may ask ZooKeeper."""
        has_moved = partial(self._directory.has_moved, line.address, MOVED_LOOK_MS)
        try:
            self._looking = call_aside(self.loop, has_moved, DIRECTORY_THREAD)
        except RuntimeError as error:  # no thread can be started now: the watch must go on, and looks again
            _log.debug("it cannot be asked whether another oracle has become primary: %s", str(error))
            return
        self._looking.add_done_callback(lambda asked: self._looked(line, asked))

    def _looked(self, line: Line, asked: asyncio.Future[bool]) -> None:
        self._looking = None
        if not asked.cancelled() and asked.exception() is None and asked.result() and self._line is line:
            self._leave(line, "another oracle has become primary")
