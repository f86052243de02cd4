"""Requests to the oracle that somebody waits for, and what may become of them.

Each caller of a ticket is told exactly once, an answer or an error. Until then it may be sent several times: after a
refusal (nothing was done) or a loss (it may have been done), which for a commit is remembered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from itertools import repeat
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from client.errors import NoPrimary, PythiaError, ReplyLost
from wire import CommitReply, CommitRequest, LargeCommitRequest, Message, Reason
from wire.packing import CommitArguments

_REASONS: Final = tuple(Reason)
REASONS_KNOWN: Final = len(_REASONS)


class Begun(NamedTuple):
    """So many transactions began, at ``first_start_timestamp`` and after it, all at ``snapshot``, in ``epoch``."""

    first_start_timestamp: int
    transactions: int
    snapshot: int
    epoch: int


class Decision(NamedTuple):
    """An oracle's answer to a commit; ``commit_timestamp`` is 0 where it refused, for ``reason``.

    ``after_loss``: an earlier answer to the same request was lost.
    """

    commit_timestamp: int
    reason: Reason
    after_loss: bool


_NAMED: Final = tuple.__new__
"""Makes a named tuple of its class and a tuple, at half of the cost of ``_make``."""


class Decisions(NamedTuple):
    """The answers to a batch of commits, as columns, in the order in which was asked."""

    reply: CommitReply
    after_loss: bool


class Caller(Protocol):
    """Who waits for an answer, as futures have it: told once, on the event loop; done as well when it waits no more."""

    def done(self) -> bool:
        """Whether it was told, or does not wait any more."""

    def set_result(self, answer: Any, /) -> None:
        """Give it the answer. Not for who is done; must not raise otherwise."""

    def set_exception(self, error: Exception, /) -> None:
        """Give it the error that there is instead. Not for who is done; must not raise otherwise."""


class Ticket:
    """What callers ask for together; ``until_s``: on the monotonic clock, when they stop waiting.

    Their part of it is as little as can be, a place in a list: it happens a hundred thousand times a second. What a
    ticket as a rule never gets is an attribute of its class.
    """

    lane: ClassVar[int]
    """Tickets of one lane share frames."""
    alone = False
    """It must not share a frame: it is a frame's worth, or one that it shared was refused as a whole."""
    lost: ReplyLost | None = None
    """The last time that an answer did not come."""
    on_sent: Callable[[], None] | None = None
    """Called on the event loop whenever it has gone out; not for begins."""
    callers: list[Caller]
    callers_max = 1
    """Callers who may share it."""
    asked_s: float
    until_s: float

    @property
    def is_awaited(self) -> bool:
        """Whether anybody waits for it who has not been told yet."""
        return not all(caller.done() for caller in self.callers)

    def fail(self, error: PythiaError) -> None:
        """Tell those who still wait what there is instead of an answer: each by an error of its own, since whoever
        raises one adds a traceback to it, and with that all that he has at hand.
        """
        for caller in self.callers:
            if not caller.done():
                caller.set_exception(copy(error))

    def give_up(self, now_s: float, reason: str) -> None:
        """Tell the callers that the time is up."""
        self.fail(self.doubt() or NoPrimary(int(1000 * (now_s - self.asked_s)), str(self.lost or reason)))

    def doubt(self) -> ReplyLost | None:
        """Why it is not certain that nothing was done; whether a question was heard makes no difference."""
        return None

    def split(self) -> Sequence[Ticket]:
        """The same as tickets that go out alone, one for each caller."""
        self.alone = True
        return (self,)


def callers_of(tickets: Sequence[Ticket]) -> int:
    """How many callers they have in all."""
    if len(tickets) == 1:
        return len(tickets[0].callers)
    return sum([len(ticket.callers) for ticket in tickets])


class BeginTicket(Ticket):
    """Asks for ``each`` start timestamps for each of its callers. They are told ``Begun``."""

    lane = 0

    def __init__(self, callers: list[Caller], asked_s: float, until_s: float, each: int) -> None:
        self.callers = callers
        self.asked_s = asked_s
        self.until_s = until_s
        self.each = each

    @property
    def transactions(self) -> int:
        """In all."""
        return self.each * len(self.callers)

    def begun(self, first_start_timestamp: int, snapshot: int, epoch: int) -> None:
        """Tell each caller its own."""
        if len(self.callers) == 1:
            _tell_one(self.callers[0], _NAMED(Begun, (first_start_timestamp, self.each, snapshot, epoch)))
            return
        starts = range(first_start_timestamp, first_start_timestamp + self.transactions, self.each)
        columns = zip(starts, repeat(self.each), repeat(snapshot), repeat(epoch))
        _tell(self.callers, map(_NAMED, repeat(Begun), columns))

    def split(self) -> Sequence[Ticket]:
        """See ``Ticket``."""
        parts = [BeginTicket([caller], self.asked_s, self.until_s, self.each) for caller in self.callers]
        return _alone(parts, self.lost)


class CommitTicket(Ticket):
    """Asks for one commit for each of its callers, over ``cells`` conflict keys in all. They are told ``Decision``."""

    lane = 1

    def __init__(
        self, callers: list[Caller], asked_s: float, until_s: float, arguments: CommitArguments, cells: int
    ) -> None:
        self.callers = callers
        self.asked_s = asked_s
        self.until_s = until_s
        self.arguments = arguments
        self.cells = cells

    def decided(self, timestamps: Sequence[int], reasons: Sequence[int]) -> None:
        """Tell each caller its own; ``reasons`` are those of the protocol."""
        if len(self.callers) == 1:
            _tell_one(self.callers[0], _NAMED(Decision, (timestamps[0], _REASONS[reasons[0]], self.lost is not None)))
            return
        known = map(_REASONS.__getitem__, reasons)
        columns = zip(timestamps, known, repeat(self.lost is not None))
        _tell(self.callers, map(_NAMED, repeat(Decision), columns))

    def doubt(self) -> ReplyLost | None:
        """See ``Ticket``: it may have committed."""
        return self.lost

    def split(self) -> Sequence[Ticket]:
        """See ``Ticket``."""
        parts = [
            CommitTicket([caller], self.asked_s, self.until_s, one, len(one.write_sets[0]))
            for caller, one in zip(self.callers, self.arguments.split(), strict=True)
        ]
        for part in parts:
            part.on_sent = self.on_sent
        return _alone(parts, self.lost)


class SingleTicket(Ticket):
    """A frame of its own, for one caller."""

    alone = True

    def __init__(self, caller: Caller, asked_s: float, until_s: float) -> None:
        self.callers = [caller]
        self.asked_s = asked_s
        self.until_s = until_s

    def end(self, answer: object) -> None:
        """Tell its caller, unless that was told something before."""
        _tell_one(self.callers[0], answer)


class BatchTicket(SingleTicket):
    """Asks for many commits, as columns. Its caller is told ``Decisions``."""

    lane = 1

    def __init__(self, caller: Caller, asked_s: float, until_s: float, request: CommitRequest) -> None:
        super().__init__(caller, asked_s, until_s)
        self.payload = request.payload()

    def doubt(self) -> ReplyLost | None:
        """See ``Ticket``: any of it may have committed."""
        return self.lost


class QuestionTicket(SingleTicket):
    """Any other request. Its caller is told a message of one of the classes ``answers``."""

    lane = 2

    def __init__(
        self, caller: Caller, asked_s: float, until_s: float, request: Message, answers: Sequence[type[Message]]
    ) -> None:
        super().__init__(caller, asked_s, until_s)
        self.request = request
        self.answers = tuple(answers)

    def doubt(self) -> ReplyLost | None:
        """See ``Ticket``: a large commit is a question, too."""
        return self.lost if isinstance(self.request, LargeCommitRequest) else None


def _tell_one(caller: Caller, answer: object) -> None:
    """Tell a caller, unless it waits no more."""
    if not caller.done():
        caller.set_result(answer)


def _tell(callers: Sequence[Caller], answers: Iterable[object]) -> None:
    """Tell each caller its own, but for those who wait no more. All are of one class.

    As a rule without a loop in Python, which would cost as much again as all else that is done for a caller here.
    """
    kind = type(callers[0])
    if any(map(kind.done, callers)):
        for caller, answer in zip(callers, answers, strict=True):
            _tell_one(caller, answer)
    else:
        deque(map(kind.set_result, callers, answers), maxlen=0)


def _alone(tickets: Sequence[Ticket], lost: ReplyLost | None) -> Sequence[Ticket]:
    for ticket in tickets:
        ticket.alone, ticket.lost = True, lost
    return tickets
