"""A door before a framed gateway that is spoken to by HTTP. As HBase's own, it may ask for Kerberos each time."""

from __future__ import annotations

import base64
import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.socket_frames import receive_frame, send_frame
from tests.unit.store.half_kerberos import HELLO, PROOF

WAIT_SECONDS_MAX = 10.0
HELLO_IN_A_HEADER = f"Negotiate {base64.b64encode(HELLO).decode()}"


class HttpDoor(ThreadingHTTPServer):
    """``status``: of the next answers. ``closes``: says after each that it takes no more, and ``lingers`` or hangs up.

    ``shows``: who it is, where it asks for Kerberos.
    """

    daemon_threads = True

    def __init__(self, behind: int, *, kerberos: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = behind
        self.kerberos = kerberos
        self.status = 200
        self.closes = False
        self.lingers = False
        self.chunked = False
        self.shows = PROOF
        self.connections = 0
        self.asked: list[dict[str, str]] = []
        """The headers of each request."""

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HttpDoor

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1
        self._behind = socket.create_connection(("127.0.0.1", self.server.behind))

    def finish(self) -> None:
        self._behind.close()
        with suppress(OSError):
            super().finish()

    def do_POST(self) -> None:
        door, message = self.server, self.rfile.read(int(self.headers["Content-Length"]))
        door.asked.append(dict(self.headers))
        if door.kerberos and self.headers.get("Authorization") != HELLO_IN_A_HEADER:
            self.send_response(401)
            self.send_header("WWW-Authenticate", "Negotiate")
            self._send(b"")
            return
        try:
            send_frame(self._behind, message)
            answer = receive_frame(self._behind)
        except (OSError, EOFError):
            self.close_connection = True
            return
        if door.status != 200:
            answer = b"the reason"
        self.send_response(door.status)
        self.send_header("Content-Type", "application/x-thrift")
        if door.kerberos and door.shows:
            self.send_header("WWW-Authenticate", f"Negotiate {base64.b64encode(door.shows).decode()}")
        if door.closes:
            self.send_header("Connection", "close")
            self.close_connection = not door.lingers
        self._send(answer)

    def _send(self, body: bytes) -> None:
        if not self.server.chunked:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for start in range(0, len(body), 3):
            part = body[start : start + 3]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""


@contextlib.contextmanager
def http_before(port: int, *, kerberos: bool = False) -> Iterator[HttpDoor]:
    """A door with a port of its own."""
    door = HttpDoor(port, kerberos=kerberos)
    serving = threading.Thread(target=door.serve_forever, args=(0.02,), daemon=True)
    serving.start()
    try:
        yield door
    finally:
        door.shutdown()
        door.server_close()
        serving.join(WAIT_SECONDS_MAX)
