"""Requests and answers of a gateway that listens for HTTP (``hbase.regionserver.thrift.http``); no socket is touched.

A message goes as the body of a request, and comes as that of its answer. What is encoded for the framed transport needs
no change: the length before each message is taken off on the way there, and put before it on the way back. Where the
gateway asks for Kerberos each request shows who asks, and each answer who gave it (SPNEGO, RFC 4559).

The invariant: one request at a time is under way; and of an answer nothing is believed before the other side has shown
that it is whom it was asked for as.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Final

import h11

from access.gssapi import KerberosFailure
from access.kdc import Begun
from access.sasl import Context
from store.hbase.addresses import Address
from store.hbase.framing import FRAME_BYTES_MAX, first_frame, framed

SERVICE: Final = "HTTP"
"""The first part of the principal of whoever is asked by HTTP (RFC 4559)."""
_THRIFT: Final = b"application/x-thrift"
_NEGOTIATE: Final = b"Negotiate "
_TEXT_CHARACTERS_MAX: Final = 300
_FINE, _UNAUTHORIZED = 200, 401


class HttpTalk:
    """What is said over one connection to ``address``. ``is_over``: it takes no more requests."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._http = h11.Connection(h11.CLIENT)
        self._to_send = bytearray()
        self._context: Context | None = None
        self._response: h11.Response | None = None
        self._body = bytearray()
        self.is_over = False

    def messages(self, data: bytes | bytearray | memoryview) -> Iterator[bytes]:
        """Those of frames that are whole with ``data``; a part of one waits for the others."""
        self._to_send += data
        while (message := first_frame(self._to_send)) is not None:
            yield message

    def request(self, message: bytes, begun: Begun | None = None) -> bytes:
        """What to send for a message; ``begun``: with whom, where the gateway asks for Kerberos.

        Raises ``ConnectionError`` where this connection takes no more.
        """
        headers = [
            (b"Host", b"%s:%d" % (self._address.host.encode("idna"), self._address.port)),
            (b"Content-Type", _THRIFT),
            (b"Accept", _THRIFT),
            (b"Content-Length", b"%d" % len(message)),
        ]
        if begun is not None:
            self._context = begun.agreement.context
            headers.append((b"Authorization", _NEGOTIATE + base64.b64encode(begun.token)))
        try:
            parts = (h11.Request(method=b"POST", target=b"/", headers=headers), h11.Data(message), h11.EndOfMessage())
            return b"".join(self._http.send(part) or b"" for part in parts)
        except h11.LocalProtocolError as error:
            raise ConnectionError(f"this connection takes no more requests: {error}") from error

    def unseal(self, data: bytes | memoryview) -> bytes:
        """The messages of answers that are whole with ``data``, framed. Raises ``ConnectionError``."""
        frames = bytearray()
        try:
            self._http.receive_data(bytes(data))
            while True:
                event = self._http.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    return bytes(frames)
                if isinstance(event, h11.Response):
                    self._response = event
                elif isinstance(event, h11.Data):
                    self._take(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    frames += framed(self._answer())
                    self._next()
                elif isinstance(event, h11.ConnectionClosed):
                    self.is_over = True
                    return bytes(frames)
        except h11.RemoteProtocolError as error:
            raise ConnectionError(f"it does not answer by HTTP ({error}): its address has no http before it") from error

    def _take(self, part: bytes | bytearray) -> None:
        if len(self._body) + len(part) > FRAME_BYTES_MAX:
            raise ConnectionError(f"it sent an answer of more than {FRAME_BYTES_MAX} bytes")
        self._body += part

    def _answer(self) -> bytes:
        """The body of an answer that may be believed."""
        response, body = self._response, bytes(self._body)
        assert response is not None
        if response.status_code == _UNAUTHORIZED and self._context is None:
            raise ConnectionError("it asks for Kerberos: its address has kerberos+ before http")
        if response.status_code != _FINE:
            text = body.decode("utf-8", "replace").strip()[:_TEXT_CHARACTERS_MAX]
            reason = response.reason.decode("ascii", "replace")
            raise ConnectionError(
                f"it answered {response.status_code} {reason}".strip() + (f": {text}" if text else "")
            )
        if self._context is not None:
            self._be_shown(self._context, dict(response.headers).get(b"www-authenticate", b""))
        return body

    def _be_shown(self, context: Context, shown: bytes) -> None:
        try:
            token = base64.b64decode(shown.removeprefix(_NEGOTIATE), validate=True)
            if token:
                context.step(token)
        except (binascii.Error, KerberosFailure) as error:
            raise ConnectionError(f"it has not shown by its answer who it is: {error}") from error
        if not context.is_complete:
            raise ConnectionError("it has not shown by its answer who it is")

    def _next(self) -> None:
        self._response, self._context = None, None
        self._body.clear()
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        else:
            self.is_over = True
