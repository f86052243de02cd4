"""What an operator is told where an oracle does not answer."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from fleet import NoAnswer, ask_everything, ask_status

_RESET = struct.pack("ii", 1, 0)
"""Lingering for no time: what the system does with connections of a process that is killed, and of one that ends."""


def hang_up(connection: socket.socket) -> None:
    while not connection.recv(65_536):
        pass


def reset(connection: socket.socket) -> None:
    connection.recv(1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


@contextmanager
def oracle_that(does: Callable[[socket.socket], None]) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            for _ in range(2):
                connection, _ = listening.accept()
                with connection:
                    does(connection)

        answering = threading.Thread(target=answer)
        answering.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        answering.join()


@pytest.mark.parametrize("does", [hang_up, reset])
def test_an_oracle_that_ends_meanwhile_is_called_that(does: Callable[[socket.socket], None]) -> None:
    with oracle_that(does) as address:
        for ask in (ask_status, ask_everything):
            with pytest.raises(NoAnswer, match=f"{address}: the connection was closed without an answer: its process"):
                ask(address, 20_000)


def test_an_oracle_that_has_ended_is_called_that() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
    with pytest.raises(NoAnswer, match=f"{address}: nothing listens there: its process may have just ended"):
        ask_status(address, 20_000)


def test_an_oracle_that_is_silent_is_waited_for_as_long_as_was_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(NoAnswer, match=f"{address}: no answer within 50 ms"):
            ask_status(address, 50)
