"""Everything that a request can be answered with instead of what it asked for (RFC 9457), in one table.

The invariant: each error has one code, and a code says by itself whether to try again, and what: the same request, or a
new transaction. docs/rest.md has the same table; a test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from client import (
    AccessDenied,
    Conflict,
    InvalidRequest,
    NoPrimary,
    OutcomeUnknown,
    PythiaError,
    SnapshotTooOld,
    TableFenced,
    TransactionAborted,
    TransactionExpired,
    TransactionTooLarge,
)
from client.errors import NoThreadFree, ReplyLost
from store import StoreError, StoreUnavailable

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "/v1/problems/"

Again = Literal["no", "request", "transaction"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One code. ``again``: what may succeed when it is tried again; ``advice``: what to do, for people."""

    status: int
    title: str
    again: Again
    advice: str


KINDS: Mapping[str, Kind] = {
    "invalid-request": Kind(422, "The request cannot be served as it is", "no", "Correct what `detail` names."),
    "not-text": Kind(422, "A value is not UTF-8", "no", "Ask again with `?encoding=base64`."),
    "idempotency-key-reused": Kind(
        422, "The key came with another request", "no", "Take a fresh `Idempotency-Key` for each request that differs."
    ),
    "token-missing": Kind(401, "A token is asked for", "no", "Send `Authorization: Bearer …` with a token."),
    "token-refused": Kind(401, "The token opens nothing", "no", "Ask who runs this service for another token."),
    "role-missing": Kind(403, "The token has not got the role", "no", "Ask for a token with the role that is named."),
    "foreign-page": Kind(
        403, "A page of another site asks", "no", "Ask from the pages of this server, or from a program."
    ),
    "too-many-requests": Kind(
        429, "The token has too many requests under way", "request", "Wait for answers before asking for more."
    ),
    "not-found": Kind(404, "There is no such path", "no", "See `/v1/openapi.json` for what there is."),
    "method-not-allowed": Kind(405, "The path has no such method", "no", "Use a method that the `Allow` header names."),
    "body-too-large": Kind(413, "The body is too large", "no", "Send it in several requests."),
    "body-too-slow": Kind(408, "The body did not come in time", "request", "Send it faster, or in smaller requests."),
    "not-primary": Kind(
        421,
        "This oracle stands by",
        "request",
        "Send the request to `primary`, where it is known; else try again soon.",
    ),
    "no-primary": Kind(503, "No oracle is primary now", "request", "Try again after `Retry-After`; nothing was done."),
    "oracle-refuses": Kind(
        503,
        "The oracle does not let this service in",
        "request",
        "Nothing was done: who runs this service has to look at its own token and certificates.",
    ),
    "overloaded": Kind(503, "Too much is asked at once", "request", "Try again after `Retry-After`; nothing was done."),
    "store-unavailable": Kind(
        503,
        "HBase does not answer",
        "request",
        "Try again after `Retry-After`. A commit ends in one answer all the same.",
    ),
    "too-many-transactions": Kind(
        429, "Too many transactions are open here", "request", "End those that are open, or wait until they expire."
    ),
    "too-many-bytes": Kind(
        429,
        "Open transactions hold too much",
        "request",
        "Commit or roll back some of them; nothing of this was taken.",
    ),
    "conflict": Kind(
        409,
        "Another transaction committed first",
        "transaction",
        "Begin a new transaction, read again, and decide anew.",
    ),
    "table-fenced": Kind(
        409, "A table was fenced after the transaction began", "transaction", "Begin a new transaction."
    ),
    "snapshot-too-old": Kind(
        409,
        "The oracle does not remember the snapshot",
        "transaction",
        "Begin a new transaction, or commit with `validated`.",
    ),
    "aborted": Kind(409, "The transaction was aborted", "transaction", "Begin a new one, unless `retry` is false."),
    "already-committed": Kind(409, "The transaction has committed", "no", "It cannot be taken back."),
    "transaction-busy": Kind(
        409, "Another request uses the transaction now", "request", "Use one transaction from one request at a time."
    ),
    "transaction-too-large": Kind(413, "The write set is too large", "no", "Split the work into several transactions."),
    "transaction-unknown": Kind(
        404,
        "No such transaction is open here",
        "transaction",
        "Nothing of it is visible, unless it committed: ask `/v1/oracle/outcomes/{id}`. Commit it again for a final "
        "answer, or begin a new one.",
    ),
    "transaction-lost": Kind(
        410,
        "The transaction was lost with the process that held it",
        "transaction",
        "It will never commit, and nothing of it is visible: begin a new one.",
    ),
    "transaction-expired": Kind(
        410, "The transaction was not used for too long", "transaction", "It was given up: begin a new one."
    ),
    "transaction-ended": Kind(410, "The transaction has ended", "no", "A transaction is used once: begin a new one."),
    "outcome-unknown": Kind(
        504,
        "The outcome was not known in time",
        "request",
        "Send the same commit again until it is answered: it never commits twice. Do not begin the work anew before.",
    ),
    "cannot-hand-over": Kind(
        409,
        "Nothing was handed over",
        "request",
        "The primary serves as before. Look at the members, and ask again when a standby answers.",
    ),
    "hand-over-uncertain": Kind(
        504,
        "No successor was seen in time",
        "no",
        "The lease may have been released, or may yet be: look at the members before you ask again.",
    ),
    "internal": Kind(500, "A fault of this server", "no", "Report it, with the time: its log has more."),
}


class Problem(Exception):
    """An answer that is an error; ``more`` are members of its own, ``headers`` go with it."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        retry: bool | None = None,
        retry_after_ms: int | None = None,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.kind = KINDS[code]
        self.detail = detail
        self.retry = self.kind.again != "no" if retry is None else retry
        self.retry_after_ms = retry_after_ms
        self.headers = dict(headers or {})
        self.more = more
        if retry_after_ms is not None:
            self.headers["Retry-After"] = str(-(-retry_after_ms // 1000))

    def body(self) -> dict[str, Any]:
        """The members of the problem document."""
        body: dict[str, Any] = {
            "type": TYPE_PREFIX + self.code,
            "code": self.code,
            "title": self.kind.title,
            "status": self.kind.status,
            "detail": _sound(f"{self.detail.rstrip('.')}. {self.kind.advice}"),
            "retry": self.retry,
            **self.more,
        }
        if self.retry:
            body["retry_with"] = self.kind.again
        if self.retry_after_ms is not None:
            body["retry_after_ms"] = self.retry_after_ms
        return body

    def anew(self) -> Problem:
        """The same to be raised, for who keeps one: an error that is kept keeps whatever it passed through."""
        return Problem(
            self.code,
            self.detail,
            retry=self.retry,
            retry_after_ms=self.retry_after_ms,
            headers=self.headers,
            **self.more,
        )

    def is_final(self) -> bool:
        """Whether the same request would get the same answer for good, as far as this process is concerned."""
        return self.kind.again != "request" and self.kind.status < 500


def _sound(text: str) -> str:
    """Without the half characters that JSON can bring in and UTF-8 cannot take out."""
    return text.encode(errors="replace").decode()


_ABORTED: tuple[tuple[type[TransactionAborted], str], ...] = (
    (Conflict, "conflict"),
    (TableFenced, "table-fenced"),
    (SnapshotTooOld, "snapshot-too-old"),
    (TransactionExpired, "transaction-expired"),
    (TransactionTooLarge, "transaction-too-large"),
    (TransactionAborted, "aborted"),
)


def problem_of(error: PythiaError | StoreError, retry_after_ms: int) -> Problem:
    """What an error of the library is told as."""
    if isinstance(error, TransactionAborted):
        code = next(code for kind, code in _ABORTED if isinstance(error, kind))
        return Problem(code, str(error), retry=error.retriable, start_timestamp=str(error.start_timestamp))
    if isinstance(error, OutcomeUnknown):
        return Problem(
            "outcome-unknown", str(error), retry_after_ms=retry_after_ms, start_timestamp=str(error.start_timestamp)
        )
    if isinstance(error, ReplyLost):
        return Problem("outcome-unknown", str(error), retry_after_ms=retry_after_ms)
    if isinstance(error, AccessDenied):
        return Problem("oracle-refuses", str(error), retry_after_ms=retry_after_ms)
    if isinstance(error, NoPrimary):
        return Problem("no-primary", str(error), retry_after_ms=retry_after_ms)
    if isinstance(error, InvalidRequest) or not isinstance(error, (PythiaError, StoreUnavailable)):
        return Problem("invalid-request", str(error))
    if isinstance(error, NoThreadFree):
        return Problem("overloaded", "no thread came free in time (threads_max)", retry_after_ms=retry_after_ms)
    if isinstance(error, StoreError):
        return Problem("store-unavailable", str(error), retry_after_ms=retry_after_ms)
    return Problem("internal", str(error))
