"""A socket that waits for a whole answer for a limited time, and not only for each piece of it.

A socket's own limit begins anew with each byte that comes. A gateway, or what stands before it, that lets one byte
through every few seconds would so keep a caller for hours, whatever its limits.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable
from typing import Final

from access.service_tls import HUNG_UP

ANSWER_BYTES_IN_TIME: Final = 2**18
"""So much of an answer has the whole limit to come in: with 10 s it comes at 26 KB/s at least."""

_NEVER_ANSWERED: Final = (
    "it hung up before it had answered anything over this connection: it is going down, or was not started as HBase's "
    "Thrift 1 server with the binary protocol and the buffered transport, its defaults (framed: give "
    "framed://host:port; TLS before it: give tls://host:port; HTTP: give http://host:port)"
)
_NEVER_ANSWERED_OVER_TLS: Final = (
    "it hung up before it had answered anything over this connection: it asks for a certificate "
    "(PYTHIA_THRIFT_TLS_CERTIFICATE_FILE), or HBase's Thrift gateway behind it is down or going down, or has another "
    "transport (framed: give framed+tls://host:port)"
)
_SILENT: Final = (
    "timed out; it has answered nothing over this connection yet: where it asks for Kerberos, its address begins with "
    "kerberos"
)
_HTTP_BEGIN: Final = b"HTTP"
_ALERT_BEGIN: Final = b"\x15\x03"
"""What a TLS server says to bytes that are no TLS: an alert, of whatever version."""


class PunctualSocket:
    """``connected`` with a limit for answers; what Thrift's library and ours ask of a socket. For one thread at a time.

    The first bytes after what was sent last are waited for up to the limit that is set, and the others up to as long
    again, and once more for each ``ANSWER_BYTES_IN_TIME`` of them; what the caller does between two pieces does not
    count. ``TimeoutError`` beyond it; ``EOFError`` where the other side hangs up and has never sent anything.
    ``monotonic`` gives seconds.
    """

    def __init__(
        self,
        connected: socket.socket,
        *,
        expects_http: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._socket = connected
        self._expects_http = expects_http
        self._monotonic = monotonic
        self._limit_seconds = 0.0
        self._is_shortened = False
        self._received = 0
        self._has_answered = False
        self._waited_seconds = 0.0

    def settimeout(self, seconds: float) -> None:
        """Set the limit, of what is sent too."""
        self._limit_seconds = seconds
        self._is_shortened = False
        self._socket.settimeout(seconds)

    def sendall(self, data: bytes | memoryview) -> None:
        """Send a request, or a part of it; its answer has not begun."""
        if self._is_shortened:
            self.settimeout(self._limit_seconds)
        self._received, self._waited_seconds = 0, 0.0
        try:
            self._socket.sendall(data)
        except HUNG_UP as error:
            self._explain(error)
            raise

    def recv(self, bytes_max: int) -> bytes:
        """Some of the answer; nothing once the other side has hung up."""
        began = self._limited()
        try:
            data = self._socket.recv(bytes_max)
        except (*HUNG_UP, TimeoutError) as error:
            self._explain(error)
            raise
        self._came(data, len(data), began)
        return data

    def recv_into(self, buffer: memoryview) -> int:
        """Fill some of ``buffer`` with the answer; 0 bytes once the other side has hung up."""
        began = self._limited()
        try:
            received = self._socket.recv_into(buffer)
        except (*HUNG_UP, TimeoutError) as error:
            self._explain(error)
            raise
        self._came(buffer, received, began)
        return received

    def shutdown(self, how: int) -> None:
        """See ``socket.socket``."""
        self._socket.shutdown(how)

    def close(self) -> None:
        """See ``socket.socket``."""
        self._socket.close()

    def _explain(self, error: OSError | None) -> None:
        """Raise what it may mean that the other side hung up, or did not answer, where it has never sent anything."""
        if self._has_answered:
            return
        if isinstance(error, TimeoutError):
            raise TimeoutError(_SILENT) from error
        is_tls = isinstance(self._socket, ssl.SSLSocket)
        raise EOFError(_NEVER_ANSWERED_OVER_TLS if is_tls else _NEVER_ANSWERED) from error

    def _limited(self) -> float:
        """Leave the socket no more than what is left of the limit; when that was."""
        if self._received:
            allowed = self._limit_seconds * (1 + self._received / ANSWER_BYTES_IN_TIME)
            rest = allowed - self._waited_seconds
            if rest <= 0:
                raise TimeoutError(f"the answer began and did not end within {allowed:.1f} s")
            if rest < self._limit_seconds:
                self._socket.settimeout(rest)
                self._is_shortened = True
        return self._monotonic()

    def _came(self, data: bytes | memoryview, received: int, began: float) -> None:
        if not self._has_answered:
            if not received:
                self._explain(None)
            if bytes(data[:2]) == _ALERT_BEGIN:
                raise ConnectionError("it speaks TLS: its address is tls://host:port")
            if bytes(data[:4]) == _HTTP_BEGIN and not self._expects_http:
                raise ConnectionError("it speaks HTTP: its address is http://host:port")
            self._has_answered = True
        if self._received:
            self._waited_seconds += self._monotonic() - began
        self._received += received
