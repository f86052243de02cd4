"""How a ZooKeeper is named: the hosts of an ensemble, and whether TLS is spoken there."""

from __future__ import annotations

from typing import NamedTuple

from access.services import TLS
from lease.errors import InvalidLeaseSettings


class Ensemble(NamedTuple):
    """``hosts`` as kazoo takes them: ``host:port``, several with commas."""

    hosts: str
    tls: bool


def parse_ensemble(text: str) -> Ensemble:
    """The ensemble of ``host:port,host:port``, each with ``tls://`` before it or none.

    Raises ``InvalidLeaseSettings``.
    """
    parts = [part.strip() for part in text.split(",")]
    bare = [part.removeprefix(TLS) for part in parts]
    for host in bare:
        _check(host, text)
    if len({part.startswith(TLS) for part in parts}) > 1:  # whoever asked for TLS must not be led past it
        raise InvalidLeaseSettings(f"all of ZooKeeper's hosts have {TLS} before them, or none; not {text!r}")
    return Ensemble(",".join(bare), parts[0].startswith(TLS))


def _check(host: str, text: str) -> None:
    name, _, port = host.rpartition(":")
    if not name or "/" in host or not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65_535):
        raise InvalidLeaseSettings(
            f"ZooKeeper's hosts are host:port,host:port, or {TLS}host:port where TLS is spoken, without a path (the "
            f"root is set apart), not {text!r}"
        )
    try:
        name.encode("idna")  # as kazoo's thread will, which tells nobody who waits for it
    except UnicodeError as error:
        raise InvalidLeaseSettings(f"{name!r} cannot be the name of one of ZooKeeper's hosts: {error}") from error
