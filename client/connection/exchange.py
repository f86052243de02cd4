"""Coalescing: the requests of all callers of a process, as few frames as the traffic asks for.

Pure: tickets and bytes in, bytes and settled tickets out; no socket, no clock. Adaptive without a timer: what came
while the frames before are under way goes together with the next. A few frames are under way at once, none of them
large: with one, or with huge ones, client, oracle and store would idle in turn.
"""

from __future__ import annotations

import math
import operator
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from client.connection.pauses import Pause
from client.connection.tickets import (
    REASONS_KNOWN,
    BatchTicket,
    BeginTicket,
    CommitTicket,
    Decisions,
    QuestionTicket,
    Ticket,
    callers_of,
)
from client.errors import AccessDenied, InvalidRequest, ReplyLost
from wire import (
    BadRequest,
    CommitReply,
    Frame,
    FrameDecoder,
    Kind,
    NotAllowed,
    NotPrimary,
    Overloaded,
    ProtocolError,
    decode,
    encode_frame,
)
from wire.packing import CommitArguments, pack_begin, pack_commits, unpack_answers, unpack_begin_reply

BEGIN_FRAMES_MAX: Final = 2
"""Begin requests under way at once."""
COMMIT_FRAMES_MAX: Final = 8
"""Commit requests under way at once."""
FRAME_TRANSACTIONS_MAX: Final = 128
"""Transactions of different callers in one frame. With twice as many a begin among a thousand tasks waits twice as
long, since all callers of a frame go on in one turn of the event loop; half as many cost a tenth of the rate."""
FRAME_CALLERS_MIN: Final = 16
"""Callers who share a frame as long as there are no more of them: a frame costs as much as so many callers."""
SEEN_KEPT: Final = 0.99
"""Of the number of callers that was in sight before, from one look to the next."""
BEGINS_IN_A_ROW_MAX: Final = 8
"""Answers to begins that are passed on before those to commits that came earlier."""
SETTLED_AT_ONCE: Final = 32
"""Callers who are told in one turn of the event loop; a frame is not divided."""
FRAME_CELLS_MAX: Final = 65_536
"""Cells of different callers in one frame, unless one of them alone has more."""

_BEGINS: Final = BeginTicket.lane
_COMMITS: Final = CommitTicket.lane
_QUESTIONS: Final = QuestionTicket.lane
_BEGIN_REPLY: Final = Kind.BEGIN_REPLY
_COMMIT_REPLY: Final = Kind.COMMIT_REPLY
_OVERLOADED: Final = Kind.OVERLOADED
_OF_THE_CONNECTION: Final = 0
"""The request id of a refusal that is meant for the connection as a whole: nothing that came over it is done."""

Waiting = TypeVar("Waiting", bound=Ticket)

Refused = Callable[[Sequence[Ticket], NotPrimary | Overloaded], None]
"""Gets the tickets of a frame, of which nothing was done, and the oracle's reason."""


class Queue:
    """Tickets that wait to be sent, in the order in which they came, by what they ask for."""

    def __init__(self) -> None:
        self.begins: deque[BeginTicket] = deque()
        self.commits: deque[CommitTicket | BatchTicket] = deque()
        self.questions: deque[QuestionTicket] = deque()
        self.lanes: tuple[deque[Any], ...] = (self.begins, self.commits, self.questions)
        """The same by the tickets' ``lane``."""
        self.waiting = [0, 0, 0]
        """Callers in each lane. Whoever joins a ticket that waits is to be counted here."""
        self.pauses: tuple[Pause, ...] = (Pause(), Pause(), Pause())
        """Of each lane: an oracle may be overloaded with what one of them asks for, and serve the others."""

    def __bool__(self) -> bool:
        return bool(self.begins or self.commits or self.questions)

    @property
    def callers(self) -> int:
        """Of all tickets."""
        begins, commits, questions = self.waiting
        return begins + commits + questions

    def add(self, ticket: Ticket) -> None:
        """Let a ticket wait its turn."""
        self.lanes[ticket.lane].append(ticket)
        self.waiting[ticket.lane] += len(ticket.callers)

    def add_first(self, tickets: Iterable[Ticket]) -> None:
        """Let tickets that have waited once wait before all others, in their own order."""
        for ticket in reversed(list(tickets)):
            self.lanes[ticket.lane].appendleft(ticket)
            self.waiting[ticket.lane] += len(ticket.callers)

    def take(self, waiting: deque[Waiting]) -> Waiting:
        """The first ticket of a lane that is not empty, which is to be sent."""
        ticket = waiting.popleft()
        self.waiting[ticket.lane] -= len(ticket.callers)
        return ticket

    def take_overdue(self, now_s: float) -> list[Ticket]:
        """Take out those whose callers have stopped waiting."""
        overdue: list[Ticket] = []
        for lane, waiting in enumerate(self.lanes):
            late = [ticket for ticket in waiting if ticket.until_s <= now_s]
            if late:
                overdue += late
                kept = [ticket for ticket in waiting if ticket.until_s > now_s]
                waiting.clear()
                waiting.extend(kept)
                self.waiting[lane] = callers_of(kept)
        return overdue


class Exchange:
    """What is under way on one connection. ``refused`` gets the tickets of which nothing was done."""

    def __init__(self, queue: Queue, refused: Refused) -> None:
        self._queue = queue
        self._refused = refused
        self.callers = 0
        """Who wait for answers to what is under way."""
        self._decoder = FrameDecoder()
        self._requests = 0
        self._begins = 0
        self._commits = 0
        self._under_way: dict[int, tuple[float, Sequence[Ticket], int]] = {}
        """By request: when it was sent, its tickets, and their callers."""
        self._begin_answers: deque[Frame] = deque()
        self._other_answers: deque[Frame] = deque()
        self._begins_in_a_row = 0
        self._seen = 0.0
        self._untold: list[Callable[[], None]] = []

    def __bool__(self) -> bool:
        return bool(self._under_way)

    def oldest_s(self) -> float | None:
        """When the oldest request that is not answered was sent; ``None``: none is under way."""
        return next((sent_s for sent_s, _, _ in self._under_way.values()), None)

    def share(self) -> int:
        """Callers who may share a frame: half of those in sight, so that one half is served while the other goes on.

        It falls more slowly than it rises, in steps, so that what goes round in halves is not cut in other pieces.
        """
        self._seen = max(self.callers + self._queue.callers, self._seen * SEEN_KEPT)
        if self._seen <= 2 * FRAME_CALLERS_MIN:  # as it is for whoever has few, to whom the rest would be a cost
            return FRAME_CALLERS_MIN
        halves = math.ceil(self._seen / (2 * FRAME_CALLERS_MIN)) * FRAME_CALLERS_MIN
        return min(FRAME_TRANSACTIONS_MAX, halves)

    def to_send(self, now_s: float) -> bytes:
        """The frames that may go out now; their tickets are under way with this."""
        frames: list[bytes] = []
        queue, share = self._queue, self.share()
        pauses = queue.pauses
        while queue.questions and now_s >= pauses[_QUESTIONS].until_s:
            question = queue.take(queue.questions)
            request = question.request
            frames.append(self._send(now_s, (question,), request.KIND, request.payload))
        while queue.begins and self._begins < BEGIN_FRAMES_MAX and now_s >= pauses[_BEGINS].until_s:
            frames.append(self._send_begins(now_s, share))
        while queue.commits and self._commits < COMMIT_FRAMES_MAX and now_s >= pauses[_COMMITS].until_s:
            frames.append(self._send_commits(now_s, share))
        return b"".join(frames)

    def take_untold(self) -> list[Callable[[], None]]:
        """The ``on_sent`` of what ``to_send`` gave: to be called, each once, when that has gone out."""
        untold, self._untold = self._untold, []
        return untold

    def received(self, data: bytes) -> None:
        """Take in answers, for ``settle``. Raises ``ProtocolError`` where the other side speaks nonsense."""
        decoder = self._decoder
        decoder.take(data)
        while (frame := decoder.next_frame()) is not None:
            if frame.request_id == _OF_THE_CONNECTION:
                raise ProtocolError(f"the oracle closes the connection: {decode(frame)}")
            sent = self._under_way.get(frame.request_id)
            if sent is None:
                raise ProtocolError(f"an answer to request {frame.request_id} came, which was never made")
            answers = self._begin_answers if sent[1][0].lane == _BEGINS else self._other_answers
            answers.append(frame)

    def settle(self) -> bool:
        """Settle, or hand back, some of what was answered; whether there is more. Raises ``ProtocolError``.

        Not all at once: while the callers of one frame go on, and ask for more, the oracle is to have work, and while
        it works the callers of the next frame go on. Begins do not wait behind commits, nor these behind all begins.
        """
        settled = 0
        while settled < SETTLED_AT_ONCE and (self._begin_answers or self._other_answers):
            begins = bool(self._begin_answers) and (
                not self._other_answers or self._begins_in_a_row < BEGINS_IN_A_ROW_MAX
            )
            self._begins_in_a_row = self._begins_in_a_row + 1 if begins else 0
            settled += self._settle((self._begin_answers if begins else self._other_answers).popleft())
        return bool(self._begin_answers or self._other_answers)

    def lose(self, reason: str) -> list[Ticket]:
        """The connection is gone: everything that was under way, in the order in which it was sent."""
        try:
            while self.settle():
                pass
        except ProtocolError:  # of this frame, and those that came after it, nothing is known
            self._begin_answers.clear()
            self._other_answers.clear()
        lost = [ticket for _, tickets, _ in self._under_way.values() for ticket in tickets if ticket.is_awaited]
        self._under_way.clear()
        self.callers = 0
        for ticket in lost:
            ticket.lost = ReplyLost(reason)
        return lost

    def overdue(self, now_s: float) -> list[Ticket]:
        """Those under way whose callers have stopped waiting."""
        return [ticket for _, tickets, _ in self._under_way.values() for ticket in tickets if ticket.until_s <= now_s]

    def _send(self, now_s: float, tickets: Sequence[Ticket], kind: Kind, payload: Callable[[], bytes]) -> bytes:
        """The frame of a request, which is under way with this; nothing where no frame can hold what was asked.

        Not before there is a frame: what is under way and never went out would be waited for, in the way of all others.
        """
        number = self._requests + 1
        try:
            frame = encode_frame(kind, number, payload())
        except ProtocolError as error:
            self._impossible(tickets, error.reason)
            return b""
        self._requests = number
        callers = callers_of(tickets)
        self._under_way[number] = (now_s, tickets, callers)
        self.callers += callers
        lane = tickets[0].lane
        if lane == _BEGINS:
            self._begins += 1
            return frame
        self._commits += lane == _COMMITS
        self._untold += [ticket.on_sent for ticket in tickets if ticket.on_sent is not None]
        return frame

    def _send_begins(self, now_s: float, share: int) -> bytes:
        tickets, transactions = self._next_begins(share)
        return self._send(now_s, tickets, Kind.BEGIN_REQUEST, lambda: pack_begin(transactions))

    def _next_begins(self, share: int) -> tuple[list[BeginTicket], int]:
        """What goes in one frame, and how many transactions that are."""
        waiting = self._queue.begins
        tickets = [self._queue.take(waiting)]
        transactions, callers = tickets[0].transactions, len(tickets[0].callers)
        while waiting and not tickets[0].alone:
            following = waiting[0]
            more = transactions + following.transactions
            callers += len(following.callers)
            if following.alone or more > FRAME_TRANSACTIONS_MAX or callers > share:
                break
            transactions = more
            tickets.append(self._queue.take(waiting))
        return tickets, transactions

    def _send_commits(self, now_s: float, share: int) -> bytes:
        """The next frame of commits; nothing, where what was next turns out to be no commits."""
        first = self._queue.take(self._queue.commits)
        if isinstance(first, BatchTicket):
            payload = first.payload
            return self._send(now_s, (first,), Kind.COMMIT_REQUEST, lambda: payload)
        tickets = [first]
        if not first.alone:
            self._add_companions(tickets, share)
        commits = first.arguments
        if len(tickets) > 1:
            commits = CommitArguments()
            for ticket in tickets:
                commits.add_all(ticket.arguments)
        return self._send(now_s, tickets, Kind.COMMIT_REQUEST, lambda: pack_commits(commits))

    def _add_companions(self, tickets: list[CommitTicket], share: int) -> None:
        """What goes in one frame with the first of the queue."""
        waiting, cells, callers = self._queue.commits, tickets[0].cells, len(tickets[0].callers)
        while waiting:
            following = waiting[0]
            if following.alone or isinstance(following, BatchTicket):
                break
            cells += following.cells
            callers += len(following.callers)
            if cells > FRAME_CELLS_MAX or callers > share:
                break
            self._queue.take(waiting)
            tickets.append(following)

    def _settle(self, frame: Frame) -> int:
        """Returns how many callers that were. An answer that is nonsense leaves its tickets under way."""
        if frame.request_id not in self._under_way:
            raise ProtocolError(f"request {frame.request_id} was answered twice")
        _, tickets, callers = self._under_way[frame.request_id]
        self._answered(frame, tickets)
        del self._under_way[frame.request_id]
        self.callers -= callers
        return callers

    def _answered(self, frame: Frame, tickets: Sequence[Ticket]) -> None:
        first = tickets[0]
        lane = first.lane
        if frame.kind is not _OVERLOADED:
            self._queue.pauses[lane].refusals = 0
        if lane == _BEGINS:
            self._begins -= 1
            if frame.kind is _BEGIN_REPLY:
                _began(frame.payload, tickets)
                return
        elif lane == _COMMITS:
            self._commits -= 1
            if frame.kind is _COMMIT_REPLY and isinstance(first, CommitTicket):
                self._decided(frame.payload, tickets)
                return
        match decode(frame), first:
            case CommitReply() as reply, BatchTicket():
                first.end(Decisions(reply, first.lost is not None))
            case (NotPrimary() | Overloaded()) as refusal, _:
                self._refused(tickets, refusal)
            case NotAllowed() as refusal, _:
                for ticket in tickets:
                    ticket.fail(ticket.doubt() or AccessDenied(refusal.text))
            case BadRequest() as refusal, _:
                self._impossible(tickets, f"the oracle refused the request: {refusal.text}")
            case reply, QuestionTicket() if isinstance(reply, first.answers):
                first.end(reply)
            case reply, _:
                raise ProtocolError(f"the oracle answered with {type(reply).__name__}: it is of another version")

    @staticmethod
    def _decided(payload: bytes, tickets: Sequence[Ticket]) -> None:
        times, reasons = unpack_answers(payload)
        asked = callers_of(tickets)
        if len(times) != asked or not _are_decisions(times, reasons):
            raise ProtocolError(f"an answer to {len(times)} commits came to {asked}, or one of another version")
        first = 0
        for ticket in tickets:
            assert isinstance(ticket, CommitTicket)
            end = first + len(ticket.callers)
            ticket.decided(times[first:end], reasons[first:end])
            first = end

    def _impossible(self, tickets: Sequence[Ticket], reason: str) -> None:
        """A frame can be refused for one of those in it: the others must not suffer, so that each goes alone."""
        if len(tickets) == len(tickets[0].callers) == 1:
            # What was lost before may have been done, whatever is said of it now.
            tickets[0].fail(tickets[0].doubt() or InvalidRequest(reason))
            return
        self._queue.add_first([part for ticket in tickets for part in ticket.split() if part.is_awaited])


def _are_decisions(times: Sequence[int], reasons: Sequence[int]) -> bool:
    """Whether each has a commit timestamp exactly where its reason is 0, that it committed, and all reasons are known.

    Whoever is told goes by the timestamp: one beside a refusal would pass for a commit.
    """
    if not any(reasons):  # as a rule
        return min(times) > 0
    unlike = map(operator.ne, map(bool, times), map(bool, reasons))
    return min(times) >= 0 and max(reasons) < REASONS_KNOWN and all(unlike)


def _began(payload: bytes, tickets: Sequence[Ticket]) -> None:
    following, snapshot, epoch, count = unpack_begin_reply(payload)
    begins = [ticket for ticket in tickets if isinstance(ticket, BeginTicket)]
    asked = begins[0].transactions if len(begins) == 1 else sum(ticket.transactions for ticket in begins)
    if count != asked:
        raise ProtocolError(f"the oracle began {count} transactions where {asked} were asked for")
    for ticket in begins:
        ticket.begun(following, snapshot, epoch)
        following += ticket.transactions
