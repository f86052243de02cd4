"""How long a whole answer is waited for, on a clock that is moved by hand."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any

import pytest

from store.hbase.punctual import ANSWER_BYTES_IN_TIME, PunctualSocket

LIMIT_SECONDS = 10.0


class Line:
    """Plays the socket: each piece takes ``piece_seconds``, or the socket's own limit ends first."""

    def __init__(self) -> None:
        self.now = 0.0
        self.limit = 0.0
        self.piece_seconds = 0.0
        self.broken: OSError | None = None
        """What whoever uses it meets."""

    def settimeout(self, seconds: float) -> None:
        self.limit = seconds

    def sendall(self, data: bytes) -> None:
        if self.broken is not None:
            raise self.broken

    def recv(self, bytes_max: int) -> bytes:
        if self.broken is not None:
            raise self.broken
        self.now += min(self.piece_seconds, self.limit)
        if self.piece_seconds > self.limit:
            raise TimeoutError
        return bytes(bytes_max)


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.fixture
def connected(line: Line) -> PunctualSocket:
    opened: Any = line
    punctual = PunctualSocket(opened, monotonic=lambda: line.now)
    punctual.settimeout(LIMIT_SECONDS)
    return punctual


def trickle(connected: PunctualSocket) -> None:
    for _ in range(5_000):
        connected.recv(1)


def test_the_first_bytes_have_the_limit_and_the_others_together_as_long_again(
    line: Line, connected: PunctualSocket
) -> None:
    line.piece_seconds = 9.0
    with pytest.raises(TimeoutError):
        trickle(connected)
    assert line.now == pytest.approx(2 * LIMIT_SECONDS - 1, abs=0.01)


def test_an_answer_that_trickles_ends(line: Line, connected: PunctualSocket) -> None:
    line.piece_seconds = 0.01
    with pytest.raises(TimeoutError):
        trickle(connected)
    assert line.now == pytest.approx(LIMIT_SECONDS, abs=0.1)


def test_a_large_answer_has_its_time(line: Line, connected: PunctualSocket) -> None:
    line.piece_seconds = 9.0
    for _ in range(50):
        connected.recv(ANSWER_BYTES_IN_TIME)
    assert line.now == 450


def test_the_time_that_the_caller_takes_is_not_the_answers(line: Line, connected: PunctualSocket) -> None:
    """A kernel that reads the answer is compiled in the middle of it, say."""
    connected.recv(1)
    line.now += 100
    line.piece_seconds = 9.0
    assert connected.recv(1)


def test_the_next_answer_has_the_whole_limit_again(line: Line, connected: PunctualSocket) -> None:
    for _ in range(3):
        connected.sendall(b"")
        line.piece_seconds = 5.0
        connected.recv(1)
        connected.recv(1)
        connected.recv(1)
        line.piece_seconds = 9.9
        connected.sendall(b"")
        assert connected.recv(1)


@pytest.mark.parametrize("error", [ssl.SSLEOFError, BrokenPipeError, ConnectionResetError])
@pytest.mark.parametrize("use", [lambda one: one.sendall(b"request"), lambda one: one.recv(1)])
def test_who_hangs_up_is_told_of_in_one_way_whoever_meets_it(
    line: Line, connected: PunctualSocket, use: Callable[[PunctualSocket], object], error: type[OSError]
) -> None:
    line.broken = error()
    with pytest.raises(EOFError, match="hung up before it had answered anything"):
        use(connected)
    line.broken = None
    connected.sendall(b"request")
    connected.recv(1)
    line.broken = error()
    with pytest.raises(error):
        use(connected)
