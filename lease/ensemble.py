"""How a ZooKeeper is named: the hosts of an ensemble, and whether TLS is spoken there, or Kerberos asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from access.services import KERBEROS, KERBEROS_AND_TLS, TLS
from lease.errors import InvalidLeaseSettings


class Ensemble(NamedTuple):
    """``hosts`` as kazoo takes them: ``host:port``, several with commas."""

    hosts: str
    tls: bool = False
    kerberos: bool = False


_BEFORE: Final[Mapping[str, Ensemble]] = {
    "": Ensemble(""),
    TLS: Ensemble("", tls=True),
    KERBEROS: Ensemble("", kerberos=True),
    KERBEROS_AND_TLS: Ensemble("", tls=True, kerberos=True),
}
"""What stands before an address, and what it says."""


def parse_ensemble(text: str) -> Ensemble:
    """The ensemble of ``host:port,host:port``, each with the same of ``_BEFORE`` before it.

    Raises ``InvalidLeaseSettings``.
    """
    found = [_parsed(part.strip(), text) for part in text.split(",")]
    if len({before for before, _ in found}) > 1:  # whoever asked for TLS must not be led past it
        named = ", ".join(filter(None, _BEFORE))
        raise InvalidLeaseSettings(f"all of ZooKeeper's hosts have the same before them, {named} or none; not {text!r}")
    return _BEFORE[found[0][0]]._replace(hosts=",".join(host for _, host in found))


def _parsed(part: str, text: str) -> tuple[str, str]:
    """What stands before an address, and the address."""
    scheme, slashes, host = part.rpartition("://")
    before = scheme + slashes
    name, _, port = host.rpartition(":")
    is_port = port.isascii() and port.isdigit() and 1 <= int(port) <= 65_535
    if before not in _BEFORE or not name or "/" in host or not is_port:
        raise InvalidLeaseSettings(
            f"ZooKeeper's hosts are host:port,host:port, or {TLS}host:port where TLS is spoken, {KERBEROS}host:port "
            f"where it asks for Kerberos, {KERBEROS_AND_TLS}host:port for both, without a path (the root is set "
            f"apart), not {text!r}"
        )
    try:
        name.encode("idna")  # as kazoo's thread will, which tells nobody who waits for it
    except UnicodeError as error:
        raise InvalidLeaseSettings(f"{name!r} cannot be the name of one of ZooKeeper's hosts: {error}") from error
    return before, host
