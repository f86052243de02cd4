"""How Thrift's SASL transport agrees on Kerberos, and how its frames are sealed afterwards; no socket is touched here.

Each message of the talk is a status byte, the length and the payload (``TSaslTransport`` of Thrift); what the payloads
are is ``access.sasl``. Once both sides agree, each frame goes with its length before it, as by the framed transport:
what is encoded for that needs no change where frames are not sealed.

The invariant: the talk ends where both sides have agreed, and nowhere else.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Final

from access.gssapi import KerberosFailure
from access.sasl import Agreement, Context, Layer, NotAgreed
from store.hbase.framing import first_frame, framed

_HEADER: Final = struct.Struct(">BI")
_MECHANISM: Final = b"GSSAPI"
_PAYLOAD_BYTES_MAX: Final = 2**20
_SEAL_BYTES_MAX: Final = 1_024
"""By how much a frame grows that is sealed, at most."""
_TEXT_CHARACTERS_MAX: Final = 300
_CLEAR: Final = "a gateway that asks for no Kerberos has no kerberos:// in its address"


class Status(IntEnum):
    """What a message of the talk is."""

    START = 1
    OK = 2
    BAD = 3
    ERROR = 4
    COMPLETE = 5


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
        while (message := first_frame(self._to_send)) is not None:
            for start in range(0, len(message), self._part_bytes):
                part = message[start : start + self._part_bytes]
                with _as_agreed():
                    token = self._context.wrap(part, confidential=self._confidential)
                sealed += framed(token)
        return bytes(sealed)

    def unseal(self, data: bytes | memoryview) -> bytes:
        """The frames that are whole with ``data``."""
        self._received += data
        opened = bytearray()
        while (token := first_frame(self._received)) is not None:
            with _as_agreed():
                message = self._context.unwrap(token, confidential=self._confidential)
            opened += framed(message)
        return bytes(opened)


@contextmanager
def _as_agreed() -> Iterator[None]:
    try:
        yield
    except KerberosFailure as error:
        raise ConnectionError(f"a frame cannot be sealed, or is not, as agreed on by Kerberos: {error}") from error


class Negotiation:
    """The client's side of the talk. ``sealing`` is what it came to; ``None``: frames go as they are."""

    def __init__(self, agreement: Agreement) -> None:
        self._agreement = agreement
        self._received = bytearray()
        self.is_done = False
        self.sealing: Sealing | None = None

    def begin(self, token: bytes) -> bytes:
        """What to send first, with ``token`` in it, which the agreement begins with."""
        return _message(Status.START, _MECHANISM) + _message(Status.OK, token)

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
        agreed = self._agreement
        if status is not (Status.OK if agreed.layer is None else Status.COMPLETE):
            raise NotAgreed(f"it said {status.name} in the middle of agreeing on Kerberos")
        if agreed.layer is not None:
            self.is_done = True
            return b""
        return self._said(agreed.answer(payload))

    def _said(self, answer: bytes) -> bytes:
        """The message of an answer to the gateway; its status tells whether it is the last one."""
        agreed = self._agreement
        if agreed.layer is None:
            return _message(Status.OK, answer)
        if agreed.layer is not Layer.NONE:
            confidential = agreed.layer is Layer.CONFIDENTIALITY
            self.sealing = Sealing(agreed.context, confidential=confidential, sent_bytes_max=agreed.sent_bytes_max)
        return _message(Status.COMPLETE, answer)


def _message(status: Status, payload: bytes) -> bytes:
    return _HEADER.pack(status, len(payload)) + payload
