"""Which of several gateways to connect to next: one rule, for blocking and for non-blocking connections.

Every gateway serves the same tables, and keeps nothing for a client but its scanners. So connections are spread by
turns, and one gateway's failure is no reason to wait for it while another serves.

Invariant: an address that failed comes last for a while, but is never left out; whoever goes through the whole list has
tried every gateway there is.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple

from access.services import HTTP, HTTPS, KERBEROS, KERBEROS_AND_TLS, TLS

FRAMED: Final = "framed://"
"""Before the address of a gateway that was started with the framed transport (``hbase.regionserver.thrift.framed``, or
a non-blocking server). It is said there, so that whoever is told where the gateway is knows how to speak to it. It
takes requests of up to 2 MB, or ``hbase.regionserver.thrift.framed.max_frame_size_in_mb``; ours are smaller, but for
one of a single row that is not.
"""


class _Transport(NamedTuple):
    framed: bool = False
    tls: bool = False
    kerberos: bool = False
    http: bool = False


_TRANSPORTS: Final = {
    "": _Transport(),
    FRAMED: _Transport(framed=True),
    TLS: _Transport(tls=True),
    "framed+tls://": _Transport(framed=True, tls=True),
    # asked for with hbase.thrift.security.qop, with which a gateway takes frames
    KERBEROS: _Transport(framed=True, kerberos=True),
    KERBEROS_AND_TLS: _Transport(framed=True, tls=True, kerberos=True),
    # started with hbase.regionserver.thrift.http; what is framed for it goes without the length
    HTTP: _Transport(framed=True, http=True),
    HTTPS: _Transport(framed=True, http=True, tls=True),
    f"kerberos+{HTTP}": _Transport(framed=True, http=True, kerberos=True),
    f"kerberos+{HTTPS}": _Transport(framed=True, http=True, tls=True, kerberos=True),
}
"""By what stands before an address."""
_BEFORE: Final = {transport: before for before, transport in _TRANSPORTS.items()}


class BadAddress(ValueError):
    """What is no address of a gateway, or none of several that go together; the text says how they are written."""


class Address(NamedTuple):
    """Where a gateway listens; ``framed``: whether each message goes with its length before it; ``tls``: over TLS;
    ``kerberos``: after both sides have shown who they are; ``http``: as the body of a request.
    """

    host: str
    port: int
    framed: bool = False
    tls: bool = False
    kerberos: bool = False
    http: bool = False

    @property
    def transport(self) -> tuple[bool, bool, bool, bool]:
        """All but where it is."""
        return self[2:]

    def __str__(self) -> str:
        return f"{_BEFORE[_Transport(*self.transport)]}{self.host}:{self.port}"


def parse_addresses(text: str) -> tuple[Address, ...]:
    """The addresses of ``"host:port"`` or ``"host:port,host:port"``, each with the same of ``_TRANSPORTS`` before it.

    Raises ``BadAddress``.
    """
    addresses = tuple(_parse_address(part.strip(), text) for part in text.split(","))
    if len({(address.host, address.port) for address in addresses}) != len(addresses):
        raise BadAddress(f"each address of HBase's Thrift gateways is named once, as host:port; not {text!r}")
    # A request is encoded before it is known who gets it; and whoever asked for TLS must not be led past it.
    if len({address.transport for address in addresses}) > 1:
        transports = ", ".join(filter(None, _TRANSPORTS))
        raise BadAddress(f"all of HBase's Thrift gateways have the same transport, {transports} or none; not {text!r}")
    return addresses


def _parse_address(part: str, text: str) -> Address:
    transport, slashes, bare = part.rpartition("://")
    before = transport + slashes
    host, _, port = bare.rpartition(":")
    is_port = port.isascii() and port.isdigit() and 1 <= int(port) <= 65_535
    if before not in _TRANSPORTS or not host or "/" in host or not is_port:
        raise BadAddress(
            f"the address of HBase's Thrift gateway is host:port, as in 127.0.0.1:9090, or {FRAMED}host:port where its "
            f"transport is framed, {KERBEROS}host:port where it asks for Kerberos, {TLS}host:port where TLS is spoken "
            f"before it, framed+{TLS}host:port or {KERBEROS_AND_TLS}host:port for both, {HTTP}host:port or "
            f"{HTTPS}host:port where it listens for HTTP, with kerberos+ before that where it asks for it; several are "
            f"separated by commas; not {text!r}"
        )
    try:
        host.encode("idna")  # as whoever looks it up would, again and again
    except UnicodeError as error:
        raise BadAddress(f"{host!r} cannot be the name of the host of HBase's Thrift gateway: {error}") from error
    return Address(host, int(port), *_TRANSPORTS[before])


class Addresses:
    """The order in which to try gateways. Safe to share between threads: each step is one that Python does whole.

    Times are the caller's, in milliseconds, and never run backwards.
    """

    def __init__(self, addresses: Sequence[Address], *, avoid_failed_ms: float) -> None:
        self._addresses = tuple(addresses)
        self._avoid_failed_ms = avoid_failed_ms
        self._failed_at_ms: dict[Address, float] = {}
        self._turns = itertools.count()

    def __str__(self) -> str:
        return ",".join(map(str, self._addresses))

    @property
    def framed(self) -> bool:
        """Whether their transport is framed: that of all is, or none."""
        return self._addresses[0].framed

    @property
    def tls(self) -> bool:
        """Whether TLS is spoken to them: to all, or none."""
        return self._addresses[0].tls

    @property
    def kerberos(self) -> bool:
        """Whether they ask for Kerberos: all do, or none."""
        return self._addresses[0].kerberos

    @property
    def http(self) -> bool:
        """Whether they are spoken to by HTTP: all are, or none."""
        return self._addresses[0].http

    def in_turn(self, now_ms: float) -> list[Address]:
        """Every address: first those that serve as far as is known, by turns, then those that failed, oldest first."""
        failed_at_ms = dict(self._failed_at_ms)
        avoided = {address for address, failed_ms in failed_at_ms.items() if now_ms - failed_ms < self._avoid_failed_ms}
        serving = [address for address in self._addresses if address not in avoided]
        first = next(self._turns) % len(serving) if serving else 0
        return [*serving[first:], *serving[:first], *sorted(avoided, key=failed_at_ms.__getitem__)]

    def failed(self, address: Address, now_ms: float) -> None:
        """Note that a connection to ``address`` could not be made, broke, or led to nothing."""
        self._failed_at_ms[address] = now_ms
