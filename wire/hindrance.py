"""Why a process does not become primary, as far as it knows: for operators who see that nobody is.

A frame of its own, as the details are (``wire.details``): a process of an older release refuses it, and is understood
all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from wire.columns import PayloadReader, reason_bytes
from wire.frames import Kind
from wire.message import Message


@dataclass(frozen=True, slots=True, eq=False)
class HindranceRequest(Message):
    """What keeps you from becoming primary? Answered by every process. Layout: nothing."""

    KIND = Kind.HINDRANCE_REQUEST

    def payload(self) -> bytes:
        """The bytes after the header."""
        return b""

    @classmethod
    def read(cls, reader: PayloadReader) -> HindranceRequest:
        """The message in ``reader``. Raises ``ProtocolError``."""
        return cls()


@dataclass(frozen=True, slots=True, eq=False)
class HindranceReply(Message):
    """In words; ``""``: nothing that it knows of, or it is primary. Layout: a text (length in bytes u32, UTF-8), cut
    where it is long.
    """

    KIND = Kind.HINDRANCE_REPLY
    hindrance: str

    def payload(self) -> bytes:
        """The bytes after the header."""
        return reason_bytes(self.hindrance)

    @classmethod
    def read(cls, reader: PayloadReader) -> HindranceReply:
        """The message in ``reader``. Raises ``ProtocolError``."""
        return cls(reader.text())
