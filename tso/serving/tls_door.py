"""The frames' port behind TLS: each connection is looked at before it is shaken hands with.

Who speaks plain there is told so in a frame that any client understands, rather than cut off; and each new connection
gets the certificates of the moment. The invariant: at most ``HANDSHAKES_MAX`` connections are on their way in, each for
``handshake_ms_max`` at most (where more come, the oldest goes), and none of them is looked at by the server before its
handshake is done.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final

from access.tls import HANDSHAKE_BEGIN

log = logging.getLogger(__name__)

HANDSHAKES_MAX: Final = 1_000
ACCEPT_PAUSE_MS: Final = 100
"""After the system could not give a connection, for lack of descriptors, say."""

Context = Callable[[], ssl.SSLContext]
"""Gives that of the moment."""
Make = Callable[[], asyncio.Protocol]


class TlsDoor:
    """Accepts on ``listening`` until closed. ``make``: who is spoken to by TLS; ``make_plain``: by clear text."""

    def __init__(
        self, listening: socket.socket, tls: Context, make: Make, make_plain: Make, handshake_ms_max: int
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listening = listening
        self._tls = tls
        self._make = make
        self._make_plain = make_plain
        self._seconds_max = handshake_ms_max / 1000
        self._coming: dict[asyncio.Task[None], None] = {}
        """In the order of their coming."""
        self._accepting = self._loop.create_task(self._accept())

    def close(self) -> None:
        """Let nobody in any more."""
        self._accepting.cancel()
        for coming in self._coming:
            coming.cancel()
        self._listening.close()

    async def _accept(self) -> None:
        while True:
            try:
                accepted, address = await self._loop.sock_accept(self._listening)
            except OSError as error:
                log.warning("a connection could not be accepted: %s", str(error))
                await asyncio.sleep(ACCEPT_PAUSE_MS / 1000)
                continue
            accepted.setblocking(False)
            if len(self._coming) >= HANDSHAKES_MAX:  # who is quick is let in, however many say nothing
                log.warning("%d connections have not shaken hands: the oldest is closed", len(self._coming))
                oldest = next(iter(self._coming))
                del self._coming[oldest]
                oldest.cancel()
            coming = self._loop.create_task(self._let_in(accepted, address))
            self._coming[coming] = None
            coming.add_done_callback(lambda done: self._coming.pop(done, None))

    async def _let_in(self, accepted: socket.socket, address: object) -> None:
        handed_over = False
        try:
            async with asyncio.timeout(self._seconds_max):
                first = await self._first_byte(accepted)
                handed_over = True  # from here on the event loop closes it
                if first == HANDSHAKE_BEGIN[0]:
                    context = self._tls()
                    await self._loop.connect_accepted_socket(self._make, accepted, ssl=context)
                elif first is not None:
                    await self._loop.connect_accepted_socket(self._make_plain, accepted)
                else:
                    accepted.close()
        except (ssl.SSLError, OSError) as error:  # a handshake that fails is the other side's affair
            log.info("no TLS with a client at %s: %s", address, str(error) or "it took too long")
        finally:
            if not handed_over:
                accepted.close()

    async def _first_byte(self, accepted: socket.socket) -> int | None:
        """Looked at, and left where it is. ``None``: the other side has closed."""
        readable = self._loop.create_future()

        def tell() -> None:
            if not readable.done():
                readable.set_result(None)

        self._loop.add_reader(accepted, tell)
        try:
            await readable
        finally:
            with contextlib.suppress(ValueError):
                self._loop.remove_reader(accepted)
        first = accepted.recv(1, socket.MSG_PEEK)
        return first[0] if first else None
