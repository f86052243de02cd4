"""The client's side of the opening, which every way to an oracle goes through. Pure: bytes in, bytes out."""

from __future__ import annotations

from typing import Final

from wire.errors import ProtocolError
from wire.frames import FrameDecoder
from wire.hello import HELLO_BYTES_MAX, HelloReply, HelloRequest, NotAllowed
from wire.messages import decode, encode
from wire.service import BadRequest, Overloaded

HELLO_ID: Final = 0
"""The request id of a hello: it is about the connection, as refusals with that id are."""

Answer = HelloReply | NotAllowed | Overloaded | BadRequest


class Greeting:
    """One opening: send ``first``, and give what comes to ``received``, until it is answered. Nothing else is sent."""

    def __init__(self, token: str) -> None:
        self.first: Final = encode(HelloRequest(token), HELLO_ID, frame_bytes_max=HELLO_BYTES_MAX)
        self._decoder = FrameDecoder(frame_bytes_max=HELLO_BYTES_MAX)

    def received(self, data: bytes) -> Answer | None:
        """The oracle's answer, once it is whole. Raises ``ProtocolError`` for anything else."""
        for frame in self._decoder.feed(data):
            message = decode(frame)
            if not isinstance(message, Answer):
                raise ProtocolError(f"{frame.kind.name} is no answer to a hello")
            return message
        return None
