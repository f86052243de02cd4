"""The HTTP server: uvicorn with bounds of its own, on a socket that is given to it."""

from __future__ import annotations

import socket
import time
from collections.abc import Collection

import uvicorn
from fastapi import FastAPI

from access.tls import ServerTls
from configuration.rest_limits import RestLimits
from rest.app import admitted
from rest.callers import Callers
from rest.doors import bounded_protocol
from rest.metering import RestMetering

KEEP_ALIVE_SECONDS = 30
HEAD_BYTES_MAX = 32 * 2**10
GRACE_SECONDS_MAX = 5
BACKLOG_CONNECTIONS_MAX = 512


def make_server(
    app: FastAPI,
    limits: RestLimits,
    *,
    log_level: str = "warning",
    callers: Callers | None = None,
    tls: ServerTls | None = None,
    own_names: Collection[str] = (),
) -> uvicorn.Server:
    """A server for ``serve``; ``should_exit`` ends it. ``callers``: who may ask; ``None``: everybody who is at one of
    ``own_names``, or at an address. With TLS a name that is not its own gets no further than the certificate.
    """
    metering: RestMetering = app.state.metering
    config = uvicorn.Config(
        admitted(app, limits, callers, own_names if tls is None else None),
        http=bounded_protocol(limits, metering),
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        log_level=log_level,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS_MAX,
        h11_max_incomplete_event_size=HEAD_BYTES_MAX,
        backlog=BACKLOG_CONNECTIONS_MAX,
        ssl_context_factory=None if tls is None else lambda config, default: tls.renewing(time.monotonic),
    )
    server = uvicorn.Server(config)
    metering.read_gauge("pythia_rest_connections", lambda: len(server.server_state.connections))
    metering.read_gauge("pythia_rest_connections_max", lambda: limits.connections_max)
    return server


async def serve(server: uvicorn.Server, listening: socket.socket) -> None:
    """Serve until ``should_exit``."""
    await server.serve(sockets=[listening])
