"""What the server hands to the pipeline: a request, and how whoever sent it is answered."""

from __future__ import annotations

from typing import Protocol, final

from wire import Frame, Message, ProtocolError


class Requester(Protocol):
    """Where a request came from; the server's connection is one."""

    def send(self, message: Message, request_id: int) -> None:
        """Answer a request; a requester that has gone is no error."""
        ...

    def send_frame(self, frame: bytes) -> None:
        """Answer a request with a frame that is encoded already."""
        ...

    def refuse(self, error: ProtocolError) -> None:
        """Say what is wrong with what was sent, and close the connection."""
        ...

    def drop(self) -> None:
        """Close the connection, so that what was not answered is known to be unknown."""
        ...


@final
class Arrival:
    """A request and who waits for the answer. Of begins and commits, only the frame: they are read all together.

    Not a tuple: compiled, one of these is made and looked into at a fraction of the cost.
    """

    __slots__ = ("message", "request_id", "requester")

    def __init__(self, requester: Requester, request_id: int, message: Message | Frame) -> None:
        self.requester = requester
        self.request_id = request_id
        self.message = message

    def answer(self, message: Message) -> None:
        """Answer it."""
        self.requester.send(message, self.request_id)
