"""The files of a server's TLS, by name. Pure; what is made of them is in `access.tls`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """A server's certificate (with those that sign it) and key; ``client_authority``: who signs clients' certificates,
    which then every client must show.
    """

    certificate: str
    key: str
    client_authority: str = ""
