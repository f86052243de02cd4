"""Which of several gateways to connect to next: one rule, for blocking and for non-blocking connections.

Every gateway serves the same tables, and keeps nothing for a client but its scanners. So connections are spread by
turns, and one gateway's failure is no reason to wait for it while another serves.

Invariant: an address that failed comes last for a while, but is never left out; whoever goes through the whole list has
tried every gateway there is.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple


class Address(NamedTuple):
    """Where a gateway listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def parse_addresses(text: str) -> tuple[Address, ...]:
    """The addresses of ``"host:port"`` or ``"host:port,host:port"``. ``ValueError`` when it is something else."""
    addresses = tuple(_parse_address(part.strip(), text) for part in text.split(","))
    if len(set(addresses)) != len(addresses):
        raise ValueError(f"each address of HBase's Thrift gateways is named once, as host:port; not {text!r}")
    return addresses


def _parse_address(part: str, text: str) -> Address:
    host, _, port = part.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= 65_535:
        raise ValueError(
            f"the address of HBase's Thrift gateway is host:port, as in 127.0.0.1:9090, and several are separated by "
            f"commas; not {text!r}"
        )
    return Address(host, int(port))


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
