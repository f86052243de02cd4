"""What an operator asks of one process beyond its state: to end when it owes nothing, and who still lives.

Neither changes what becomes of a transaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from wire.columns import (
    CODE,
    OFFSET,
    TIMESTAMP,
    Codes,
    PayloadReader,
    check_not_empty,
    count_bytes,
    number_bytes,
    read_count,
)
from wire.errors import ProtocolError
from wire.frames import Kind
from wire.message import Message
from wire.transactions_request import TransactionsRequest

_U32_MAX = 2**32 - 1


@dataclass(frozen=True, slots=True, eq=False)
class DrainRequest(Message):
    """To any process: take no new work, finish what is under way within ``limit_ms``, release the lease where it is
    held, and end. Layout: limit u32.
    """

    KIND = Kind.DRAIN_REQUEST
    limit_ms: int

    def __post_init__(self) -> None:
        if not 1 <= self.limit_ms <= _U32_MAX:
            raise ProtocolError(f"limit_ms must be at least 1 and fit 32 bits, not {self.limit_ms}")

    def payload(self) -> bytes:
        """The bytes after the header."""
        return number_bytes(self.limit_ms, OFFSET)

    @classmethod
    def read(cls, reader: PayloadReader) -> DrainRequest:
        """The message in ``reader``. Raises ``ProtocolError``."""
        return cls(reader.number(OFFSET))


@dataclass(frozen=True, slots=True, eq=False)
class DrainReply(Message):
    """With nothing ``under_way`` the process ends now, and ``epoch`` is the one that it served in (0: it was standby).
    Otherwise the time was up, and it goes on serving: so many transactions waited for an answer, or were held by REST
    beside it. Layout: epoch i64, under way u32.
    """

    KIND = Kind.DRAIN_REPLY
    epoch: int = 0
    under_way: int = 0

    def __post_init__(self) -> None:
        if self.epoch < 0:
            raise ProtocolError(f"an epoch is a timestamp, not {self.epoch}")

    def payload(self) -> bytes:
        """The bytes after the header."""
        return number_bytes(self.epoch, TIMESTAMP) + number_bytes(self.under_way, OFFSET)

    @classmethod
    def read(cls, reader: PayloadReader) -> DrainReply:
        """The message in ``reader``. Raises ``ProtocolError``."""
        epoch = reader.number(TIMESTAMP)
        return cls(epoch, reader.number(OFFSET))


LIVES_TRANSACTIONS_MAX: Final = 1_000
"""Transactions in one ``LivesRequest``: a few milliseconds of the oracle's time. It refuses more."""


class Life(IntEnum):
    """Whether a transaction lives, as far as the primary knows; whether it was decided is another question."""

    GIVEN_UP = 0
    """Nothing was heard of it for a life: it can not commit in this epoch any more."""
    YOUNG = 1
    """It began within a life: nothing has to have been heard."""
    HEARD_OF = 2
    """Older, and it sent a heartbeat within a life; or it is decided to commit, and that is not on record yet."""


class LivesRequest(TransactionsRequest):
    """Do these transactions live, ``LIVES_TRANSACTIONS_MAX`` at most? Prolongs no life. Answer: ``LivesReply``."""

    KIND = Kind.LIVES_REQUEST
    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class LivesReply(Message):
    """A ``Life`` for each transaction, in the order asked. Layout: n u32, zero u32, lives u8[n]."""

    KIND = Kind.LIVES_REPLY
    lives: Codes

    def __post_init__(self) -> None:
        self._set_column("lives", CODE)
        check_not_empty("lives", self.lives)
        if int(self.lives.max()) > max(Life):
            raise ProtocolError(f"a life is a number up to {int(max(Life))}, not {int(self.lives.max())}")

    def payload(self) -> bytes:
        """The bytes after the header."""
        return count_bytes(self.lives.size) + self.lives.tobytes()

    @classmethod
    def read(cls, reader: PayloadReader) -> LivesReply:
        """The message in ``reader``. Raises ``ProtocolError``."""
        return cls(reader.take("lives", CODE, read_count(reader)))
