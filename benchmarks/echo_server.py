"""Sends back what it gets, over TCP: the raw round trip of this machine, to compare an oracle's with.

``python -m benchmarks.echo_server`` prints ``listening on HOST:PORT`` and serves until it is ended.
"""

from __future__ import annotations

import asyncio
from typing import cast

import uvloop

HOST = "127.0.0.1"


class Echo(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See ``asyncio.Protocol``."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by its class

    def data_received(self, data: bytes) -> None:
        """See ``asyncio.Protocol``."""
        self._transport.write(data)


async def serve() -> None:
    """For ever."""
    server = await asyncio.get_running_loop().create_server(Echo, HOST, 0)
    host, port = server.sockets[0].getsockname()[:2]
    print(f"listening on {host}:{port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve())
