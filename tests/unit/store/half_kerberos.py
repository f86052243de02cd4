"""Both sides of a Kerberos without a KDC, and a gateway's door that speaks SASL with it, on loopback, in a thread."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import TypeAlias

import pytest

from access import kdc
from access.gssapi import KerberosFailure
from access.sasl import Layer
from access.services import Kerberos
from drills.waiting import wait_until
from store.hbase.sasl import Status
from tests.socket_frames import receive_exactly, receive_frame, send_frame

HELLO, PROOF = b"a ticket", b"the proof that the gateway is who it should be"
WAIT_SECONDS_MAX = 10.0
_NUMBER = struct.Struct(">?I")


class HalfContext:
    """One side of what both agree on: shows what was wrapped, how, and in which order."""

    def __init__(self) -> None:
        self.is_complete = False
        self.has_ended = False
        self.wrapped: list[bytes] = []
        self._unwrapped = 0

    def step(self, token: bytes) -> bytes:
        """The client's."""
        if token not in (b"", PROOF):
            raise KerberosFailure(f"{token!r} proves nothing")
        self.is_complete = token == PROOF
        return b"" if token else HELLO

    def wrap(self, data: bytes, *, confidential: bool) -> bytes:
        """With its number before it."""
        if self.has_ended:
            raise KerberosFailure("the context has expired")
        self.wrapped.append(data)
        return _NUMBER.pack(confidential, len(self.wrapped)) + (data[::-1] if confidential else data)

    def unwrap(self, data: bytes, *, confidential: bool) -> bytes:
        """The next one."""
        self._unwrapped += 1
        if _NUMBER.unpack_from(data) != (confidential, self._unwrapped):
            raise KerberosFailure("not sealed as it should be")
        content = data[_NUMBER.size :]
        return content[::-1] if confidential else content


Asked: TypeAlias = list[tuple[Kerberos, str, str]]
"""Who was asked for, of which service, at which host."""


def without_library(monkeypatch: pytest.MonkeyPatch, contexts: list[HalfContext]) -> Asked:
    """Who is asked for from now on; ``contexts`` get those of the connections, which need no library and no KDC."""
    asked: Asked = []

    def context(kerberos: Kerberos, service: str, host: str) -> HalfContext:
        asked.append((kerberos, service, host))
        contexts.append(HalfContext())
        return contexts[-1]

    monkeypatch.setattr("access.kdc.context_for_connection", context)
    monkeypatch.setattr("access.kerberos.require_library", lambda: None)
    return asked


@contextlib.contextmanager
def silent_kdc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One that does not answer meanwhile."""
    ended = threading.Event()

    def wait(*_: object) -> HalfContext:
        ended.wait(2 * WAIT_SECONDS_MAX)
        raise KerberosFailure("Cannot contact any KDC")

    monkeypatch.setattr("access.kdc.context_for_connection", wait)
    yield
    ended.set()
    wait_until(lambda: not kdc._waiting, "threads that wait for a KDC to end", WAIT_SECONDS_MAX)


class Door:
    """Before a framed gateway at ``behind``. ``offer``: the layers, as RFC 4752 numbers them.

    ``agreed``: the answers to the offer. ``breaks_a_seal``: the next answer is not what was sealed.
    """

    def __init__(self, behind: int, offer: int, takes_bytes_max: int = 2**16) -> None:
        self.agreed: list[bytes] = []
        self.breaks_a_seal = False
        self._behind = behind
        self._offer = bytes([offer]) + takes_bytes_max.to_bytes(3)
        self._takes_bytes_max = takes_bytes_max
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def stop(self) -> None:
        for each in (self._listening, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(WAIT_SECONDS_MAX)
            assert not thread.is_alive()
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connected, _ = self._listening.accept()
                self._open.append(connected)
                self._start(self._serve, connected)

    def _start(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _serve(self, connected: socket.socket) -> None:
        context = HalfContext()
        with closing(connected), suppress(EOFError, OSError):
            assert _told(connected) == (Status.START, b"GSSAPI")
            assert _told(connected) == (Status.OK, HELLO)
            _tell(connected, Status.OK, PROOF)
            assert _told(connected) == (Status.OK, b"")
            _tell(connected, Status.OK, context.wrap(self._offer, confidential=False))
            status, answer = _told(connected)
            assert status == Status.COMPLETE
            self.agreed.append(context.unwrap(answer, confidential=False))
            _tell(connected, Status.COMPLETE, b"")
            with socket.create_connection(("127.0.0.1", self._behind)) as behind:
                self._open.append(behind)
                self._start(self._answers, connected, behind, context)
                try:
                    self._requests(connected, behind, context)
                finally:
                    behind.shutdown(socket.SHUT_RDWR)

    def _requests(self, connected: socket.socket, behind: socket.socket, context: HalfContext) -> None:
        layer, message = Layer(self.agreed[-1][0]), b""
        while True:
            frame = receive_frame(connected)
            if layer is Layer.NONE:
                send_frame(behind, frame)
                continue
            assert len(frame) <= self._takes_bytes_max
            message += context.unwrap(frame, confidential=layer is Layer.CONFIDENTIALITY)
            if message[-1:] == b"\0" and len(frame) < self._takes_bytes_max - 2**10:  # the end of the arguments
                send_frame(behind, message)
                message = b""

    def _answers(self, connected: socket.socket, behind: socket.socket, context: HalfContext) -> None:
        layer = Layer(self.agreed[-1][0])
        with suppress(EOFError, OSError):
            while True:
                answer = receive_frame(behind)
                if layer is not Layer.NONE:
                    answer = context.wrap(answer, confidential=layer is Layer.CONFIDENTIALITY)
                if self.breaks_a_seal:
                    self.breaks_a_seal, answer = False, b"\1" + b"\0" * 10
                send_frame(connected, answer)
        with suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)


def _told(connected: socket.socket) -> tuple[int, bytes]:
    status, length = struct.unpack(">BI", receive_exactly(connected, 5))
    return status, receive_exactly(connected, length)


def _tell(connected: socket.socket, status: Status, payload: bytes) -> None:
    message = struct.pack(">BI", status, len(payload)) + payload
    for start in range(len(message)):  # as it may arrive
        connected.sendall(message[start : start + 1])


@contextlib.contextmanager
def kerberos_before(port: int, offer: int, takes_bytes_max: int = 2**16) -> Iterator[Door]:
    """A door with a port of its own."""
    door = Door(port, offer, takes_bytes_max)
    try:
        yield door
    finally:
        door.stop()
