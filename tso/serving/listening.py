"""Addresses to listen on, as they are written; and, where one cannot be had, which it was and why."""

from __future__ import annotations

import os
import socket


def written(host: str, port: int) -> str:
    """``host:port``, with brackets around a host of IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def cannot_listen(host: str, port: int, error: OSError) -> OSError:
    """What to raise in place of the system's own error, whose text differs from one call to the next."""
    if error.errno is None or isinstance(error, socket.gaierror):  # whose numbers are the resolver's own
        why = error.strerror or str(error)
    else:
        why = os.strerror(error.errno).lower()
    return OSError(f"nobody can listen on {written(host, port)}: {why}")
