"""An exchange without a socket: what is asked of it, what it sends, and who is told what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from client.connection.exchange import (
    Exchange,
    Queue,
)
from client.connection.tickets import (
    BeginTicket,
    CommitTicket,
    Ticket,
)
from wire import (
    CommitReply,
    FrameDecoder,
    Message,
    decode,
    encode,
)
from wire.packing import CommitArguments


class _Caller:
    def __init__(self, name: str, ends: dict[str, object]) -> None:
        self._name = name
        self._ends = ends

    def done(self) -> bool:
        return self._name in self._ends

    def set_result(self, answer: object, /) -> None:
        assert not self.done(), "a caller was told twice"
        self._ends[self._name] = answer

    set_exception = set_result


Asked = TypeVar("Asked", bound=Ticket)


class Talk:
    """An exchange, what went out over it, and what came of each ticket."""

    def __init__(self) -> None:
        self.queue = Queue()
        self.refused: list[tuple[int, Message]] = []
        self.exchange = Exchange(self.queue, self._refuse)
        self.ends: dict[str, object] = {}
        self._decoder = FrameDecoder()

    def begin(self, name: str, count: int = 1, until_s: float = 10.0) -> BeginTicket:
        return self.asked(BeginTicket([self.caller(name)], 0.0, until_s, count))

    def commit(self, name: str, start: int, cells: Sequence[int] = (7,), until_s: float = 10.0) -> CommitTicket:
        arguments = CommitArguments.of_one(start, start - 1, 0, cells, 0)
        return self.asked(CommitTicket([self.caller(name)], 0.0, until_s, arguments, len(cells)))

    def caller(self, name: str) -> _Caller:
        return _Caller(name, self.ends)

    def asked(self, ticket: Asked) -> Asked:
        self.queue.add(ticket)
        return ticket

    def sent(self) -> list[tuple[int, Message]]:
        frames = self._decoder.feed(self.exchange.to_send(1.0))
        return [(frame.request_id, decode(frame)) for frame in frames]

    def answer(self, request_id: int, message: Message) -> None:
        self.exchange.received(encode(message, request_id))
        while self.exchange.settle():
            pass

    def _refuse(self, tickets: Sequence[object], refusal: Message) -> None:
        self.refused.append((len(tickets), refusal))


def committed(*times: int) -> CommitReply:
    return CommitReply(np.array(times), np.zeros(len(times), np.uint8))
