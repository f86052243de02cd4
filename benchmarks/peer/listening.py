"""Where a process listens, as the kernel tells it: a peer that is meant to stay on loopback is checked, not trusted."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_LISTEN = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")
_WORD_HEX_DIGITS = 8


def listening_addresses(pid: int) -> tuple[str, ...]:
    """The addresses, without ports, on which a process of ours accepts TCP connections.

    Raises:
        OSError: there is no such process.
    """
    own = set(_sockets(Path(f"/proc/{pid}/fd")))
    tables = (Path(f"/proc/{pid}/net/{name}").read_text(encoding="ascii") for name in ("tcp", "tcp6"))
    return tuple(address for table in tables for inode, address in listening_in(table) if inode in own)


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach it."""
    return ipaddress.ip_address(address).is_loopback


def listening_in(table: str) -> Iterator[tuple[str, str]]:
    """The inode and the address of each listening socket in the text of /proc/net/tcp or tcp6.

    IPv4 in IPv6's clothing is told as what it is.
    """
    for line in table.splitlines()[1:]:
        fields = line.split()
        if fields[3] == _LISTEN:
            yield fields[9], _address(fields[1].partition(":")[0])


def _sockets(descriptors: Path) -> Iterator[str]:
    for descriptor in descriptors.iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if found := _SOCKET.fullmatch(os.readlink(descriptor)):
                yield found[1]


def _address(hexadecimal: str) -> str:
    """The kernel prints an address as 32-bit words in the machine's own byte order."""
    words = [hexadecimal[start : start + _WORD_HEX_DIGITS] for start in range(0, len(hexadecimal), _WORD_HEX_DIGITS)]
    packed = b"".join(int(word, 16).to_bytes(4, sys.byteorder) for word in words)
    address = ipaddress.ip_address(packed)
    return str((isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped) or address)
