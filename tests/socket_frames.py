"""Frames on the sockets of servers of our own: each goes with its length before it, as ZooKeeper and Thrift do it."""

from __future__ import annotations

import socket
import struct


def receive_exactly(connected: socket.socket, length: int) -> bytes:
    """Raises ``EOFError`` where the other side hangs up before."""
    received = b""
    while len(received) < length:
        data = connected.recv(length - len(received))
        if not data:
            raise EOFError
        received += data
    return received


def receive_frame(connected: socket.socket) -> bytes:
    """What the next one holds. Raises ``EOFError``."""
    (length,) = struct.unpack(">I", receive_exactly(connected, 4))
    return receive_exactly(connected, length)


def framed(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def send_frame(connected: socket.socket, content: bytes) -> None:
    connected.sendall(framed(content))
