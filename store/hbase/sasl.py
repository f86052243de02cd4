"""How Thrift's SASL transport agrees on Kerberos, and how its frames are sealed afterwards; no socket is touched here.

Each message of the talk is a status byte, the length and the payload (``TSaslTransport`` of Thrift); what the payloads
are is RFC 4752. Once both sides agree, each frame goes with its length before it, as by the framed transport: what is
encoded for that needs no change where frames are not sealed.

The invariant: nothing of ours is sent before the gateway has shown that it is who the address names; and of the layers
that it offers the strongest is taken.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Final, Protocol

from access.gssapi import KerberosFailure

_HEADER: Final = struct.Struct(">BI")
_LENGTH: Final = struct.Struct(">I")
_MECHANISM: Final = b"GSSAPI"
_PAYLOAD_BYTES_MAX: Final = 2**20
_FRAME_BYTES_MAX: Final = 2**31 - 1
"""As of frames that are not sealed."""
_SEAL_BYTES_MAX: Final = 1_024
"""By how much a frame grows that is sealed, at most."""
_RECEIVED_BYTES_MAX: Final = 2**24 - 1
"""All that three bytes can say."""
_TEXT_CHARACTERS_MAX: Final = 300
_CLEAR: Final = "a gateway that asks for no Kerberos has no kerberos:// in its address"


class Status(IntEnum):
    """What a message of the talk is."""

    START = 1
    OK = 2
    BAD = 3
    ERROR = 4
    COMPLETE = 5


class Layer(IntEnum):
    """What is done to each frame afterwards, as RFC 4752 numbers it; a larger one does all that a smaller one does."""

    NONE = 1
    INTEGRITY = 2
    CONFIDENTIALITY = 4


class Context(Protocol):
    """What both sides agree on: ``access.gssapi.SecurityContext``."""

    is_complete: bool

    def step(self, token: bytes) -> bytes:
        """See there."""

    def wrap(self, data: bytes, *, confidential: bool) -> bytes:
        """See there."""

    def unwrap(self, data: bytes, *, confidential: bool) -> bytes:
        """See there."""


class NotAgreed(ConnectionError):
    """The other side speaks something else, or not as it should."""


class Refused(Exception):
    """What the other side says of why it does not agree."""


class Sealing:
    """Frames between what is encoded here, and what goes over the wire. For one thread at a time.

    Both raise ``ConnectionError``: for a frame that is not as agreed on, and where a ticket's end is that of what was.
    """

    def __init__(self, context: Context, *, confidential: bool, sent_bytes_max: int) -> None:
        self._context = context
        self._confidential = confidential
        self._part_bytes = max(1, sent_bytes_max - _SEAL_BYTES_MAX)
        self._to_send = bytearray()
        self._received = bytearray()

    def seal(self, data: bytes | bytearray | memoryview) -> bytes:
        """What to send of frames that are whole with ``data``; each in as many as the other side takes it in."""
        self._to_send += data
        sealed = bytearray()
        while (message := _first_frame(self._to_send)) is not None:
            for start in range(0, len(message), self._part_bytes):
                part = message[start : start + self._part_bytes]
                with _as_agreed():
                    token = self._context.wrap(part, confidential=self._confidential)
                sealed += _LENGTH.pack(len(token)) + token
        return bytes(sealed)

    def unseal(self, data: bytes | memoryview) -> bytes:
        """The frames that are whole with ``data``."""
        self._received += data
        opened = bytearray()
        while (token := _first_frame(self._received)) is not None:
            with _as_agreed():
                message = self._context.unwrap(token, confidential=self._confidential)
            opened += _LENGTH.pack(len(message)) + message
        return bytes(opened)


@contextmanager
def _as_agreed() -> Iterator[None]:
    try:
        yield
    except KerberosFailure as error:
        raise ConnectionError(f"a frame cannot be sealed, or is not, as agreed on by Kerberos: {error}") from error


class Negotiation:
    """The client's side of the talk. ``sealing`` is what it came to; ``None``: frames go as they are."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._received = bytearray()
        self._layer: Layer | None = None
        self.is_done = False
        self.sealing: Sealing | None = None

    def begin(self) -> bytes:
        """What to send first. The context may ask the KDC for it."""
        return _message(Status.START, _MECHANISM) + _message(Status.OK, self._context.step(b""))

    def feed(self, data: bytes) -> bytes:
        """What to send after ``data`` came. Raises ``NotAgreed``, ``Refused`` and what the context does."""
        self._received += data
        answers = bytearray()
        while (message := self._first_message()) is not None:
            answers += self._answer(*message)
        return bytes(answers)

    def _first_message(self) -> tuple[Status, bytes] | None:
        if self.is_done and self._received:
            raise NotAgreed(f"it sent {len(self._received)} bytes that nobody asked for")
        if self._received[:1] and self._received[0] not in set(Status):
            raise NotAgreed(f"it answers with something else: {_CLEAR}")
        if len(self._received) < _HEADER.size:
            return None
        status, length = _HEADER.unpack_from(self._received)
        if length > _PAYLOAD_BYTES_MAX:
            raise NotAgreed(f"it answers with something else: {_CLEAR}")
        if len(self._received) < _HEADER.size + length:
            return None
        payload = bytes(self._received[_HEADER.size : _HEADER.size + length])
        del self._received[: _HEADER.size + length]
        return Status(status), payload

    def _answer(self, status: Status, payload: bytes) -> bytes:
        if status in (Status.BAD, Status.ERROR):
            text = payload.decode("utf-8", "replace")[:_TEXT_CHARACTERS_MAX]
            raise Refused(text)
        expected = Status.OK if self._layer is None else Status.COMPLETE
        if status is not expected:
            raise NotAgreed(f"it said {status.name} in the middle of agreeing on Kerberos")
        if not self._context.is_complete:
            return _message(Status.OK, self._context.step(payload))
        if self._layer is None:
            return _message(Status.COMPLETE, self._choose(self._context.unwrap(payload, confidential=False)))
        self.is_done = True
        return b""

    def _choose(self, offer: bytes) -> bytes:
        """The answer to the layers that the gateway offers (a bit each), and how much it takes in one frame."""
        offered = [layer for layer in Layer if len(offer) == _LENGTH.size and offer[0] & layer]
        if not offered:
            raise NotAgreed("it offers nothing to agree on")
        self._layer = offered[-1]
        received_bytes_max = 0
        if self._layer is not Layer.NONE:
            confidential = self._layer is Layer.CONFIDENTIALITY
            sent_bytes_max = int.from_bytes(offer[1:])
            self.sealing = Sealing(self._context, confidential=confidential, sent_bytes_max=sent_bytes_max)
            received_bytes_max = _RECEIVED_BYTES_MAX
        return self._context.wrap(bytes([self._layer]) + received_bytes_max.to_bytes(3), confidential=False)


def _message(status: Status, payload: bytes) -> bytes:
    return _HEADER.pack(status, len(payload)) + payload


def _first_frame(arrived: bytearray) -> bytes | None:
    """What the first frame holds, which is taken out; ``None`` where it is not whole."""
    if len(arrived) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(arrived)
    if length > _FRAME_BYTES_MAX:
        raise ConnectionError(f"it sent a frame of {length} bytes")
    end = _LENGTH.size + length
    if len(arrived) < end:
        return None
    content = bytes(arrived[_LENGTH.size : end])
    del arrived[:end]
    return content
