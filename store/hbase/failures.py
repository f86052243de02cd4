"""What the gateway's errors mean, decided in one place, at the edge: no Thrift error leaves this package.

The gateway sends Java's exceptions as text, with the stack trace. An error that is not recognised here counts as one
that may pass: repeating a read or a blind put does no harm, giving up too soon does.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from thriftpy2.thrift import TApplicationException, TException

from access.service_tls import in_words
from store.errors import InvalidCell, StoreError, StoreUnavailable, TableExists, TableMissing
from store.hbase.answers import Answer, Kind, NotAnAnswer
from store.hbase.thrift_types import AlreadyExists, GatewayIOError, IllegalArgument


class GatewayFailure(StoreUnavailable):
    """A failure that may pass: the connection broke, or the gateway says that HBase cannot serve just now."""


class NotSent(GatewayFailure):
    """No connection could be made: whatever was to be asked, the gateway has not seen it."""


class ConnectionLost(GatewayFailure):
    """The gateway hung up, or the way to it broke: what was asked, it may have done or not."""


class AnswerSlow(GatewayFailure):
    """No answer came in time, and the next try will wait longer: whatever else has failed, this is worth that try."""


class ScannerLost(GatewayFailure):
    """The gateway does not know the scanner any more."""


class RegionsUnsettled(GatewayFailure):
    """The regions that the gateway names leave keys out, or hold some twice."""


ANSWERS: tuple[type[BaseException], ...] = (
    GatewayIOError,
    IllegalArgument,
    AlreadyExists,
    ScannerLost,
    RegionsUnsettled,
)
"""Errors that are an answer: the connection they came over is sound."""

BREAKDOWNS: tuple[type[BaseException], ...] = (
    AnswerSlow,
    TException,
    NotAnAnswer,
    OSError,
    EOFError,
    MemoryError,
)
"""Errors after which nothing is known of the connection, nor of the request. The last is for an absurd length."""

_TEXT_CHARACTERS_MAX = 300

_MISSING = ("TableNotFoundException", "NoSuchColumnFamilyException", "table does not exist")
_REFUSED = (
    "DoNotRetryIOException",
    "AccessDeniedException",
    "QuotaExceededException",  # of tables and regions, when a table is made
    "space quota",  # of several rows, the first line names no exception
)
_NO_NAMESPACE = "NamespaceNotFoundException"
_ATTEMPTS = "exceptions:"
"""So ends the first line where HBase's own client has repeated a call; each attempt is a line of its own."""


def meaning_of(error: BaseException) -> StoreError:
    """The error of this room that stands for one of ``ANSWERS`` or ``BREAKDOWNS``."""
    if isinstance(error, StoreError):
        return error
    text = _first_line(error)
    if isinstance(error, IllegalArgument):
        return InvalidCell(f"HBase refuses it: {text}")
    if isinstance(error, AlreadyExists):
        return TableExists(text)
    if isinstance(error, GatewayIOError):
        return _meaning_of_text(text, _message(error))
    if isinstance(error, ssl.SSLError):
        return GatewayFailure(in_words(error))
    return GatewayFailure(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def meaning_of_answer(answer: Answer) -> StoreError | None:
    """The same for an answer that was read without Thrift's library; ``None``: it is done."""
    error = exception_in(answer)
    return None if error is None else meaning_of(error)


def exception_in(answer: Answer) -> Exception | None:
    """What Thrift's library would have raised for an answer that was read without it."""
    error: Exception | None = None
    match answer.kind:
        case Kind.IO_ERROR:
            error = GatewayIOError(message=answer.text)
        case Kind.ILLEGAL_ARGUMENT:
            error = IllegalArgument(message=answer.text)
        case Kind.NOT_SERVED:
            error = TApplicationException(message=answer.text.decode("utf-8", "replace"))
    return error


def not_connected(failures: Sequence[str]) -> NotSent:
    """No gateway accepted a connection; ``failures`` says of each its address and why."""
    return NotSent(f"no connection to the HBase gateway at {', nor at '.join(failures)}")


def is_about(error: GatewayIOError, exception: str) -> bool:
    """Whether the Java exception of this name is what the gateway reports."""
    return exception in _first_line(error)


def _meaning_of_text(first_line: str, text: str) -> StoreError:
    if any(marker in text for marker in _MISSING):
        return TableMissing(first_line)
    if _NO_NAMESPACE in first_line:
        name = first_line.rpartition(": ")[2]
        return StoreError(
            f"HBase has no namespace {name}, and its gateway cannot make one: create_namespace '{name}' in HBase's "
            f"shell, or give the table another name"
        )
    if any(marker in first_line for marker in _REFUSED):
        return StoreError(f"HBase refuses it: {first_line}")
    return GatewayFailure(first_line)


def _message(error: BaseException) -> str:
    message = getattr(error, "message", None) or str(error)
    return message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)


def _first_line(error: BaseException) -> str:
    first, _, rest = _message(error).partition("\n")
    if first.endswith(_ATTEMPTS):
        attempt, _, _ = rest.partition("\n")
        first = f"{first} {attempt}"
    return first.strip()[:_TEXT_CHARACTERS_MAX]
