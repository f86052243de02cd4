"""Proxies between real sockets on loopback."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator

import pytest

from drills.proxy import CHUNK_BYTES, Mode, Proxies, Proxy
from drills.waiting import wait_until

LIMIT_SECONDS = 20.0


class Shouting(socketserver.StreamRequestHandler):
    """Answers each line in capitals, and the end of the input with a last line."""

    def handle(self) -> None:
        with contextlib.suppress(OSError):
            for line in self.rfile:
                self.wfile.write(line.upper())
            self.wfile.write(b"BYE\n")


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    address_family = socket.AF_INET


@pytest.fixture
def service() -> Iterator[str]:
    with Server(("127.0.0.1", 0), Shouting) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join(LIMIT_SECONDS)


@pytest.fixture
def proxies() -> Iterator[Proxies]:
    with Proxies() as proxies:
        yield proxies


@pytest.fixture
def proxy(proxies: Proxies, service: str) -> Proxy:
    return proxies.open("the proxy", service)


@contextlib.contextmanager
def connected(proxy: Proxy) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", proxy.port), LIMIT_SECONDS) as connection:
        yield connection


def shout(connection: socket.socket, text: bytes) -> bytes:
    connection.sendall(text + b"\n")
    return read_line(connection)


def read_line(connection: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        part = connection.recv(1_024)
        if not part:
            raise ConnectionError("closed")
        line += part
    return line


def is_reset(connection: socket.socket) -> bool:
    try:
        connection.recv(1)
    except ConnectionResetError:
        return True
    return False


def is_reset_at_once(proxy: Proxy) -> bool:
    try:
        with connected(proxy) as connection:
            return is_reset(connection)
    except ConnectionResetError:
        return True


def test_it_forwards_in_both_directions_and_hands_on_the_end(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        assert shout(connection, b"hello") == b"HELLO\n"
        connection.shutdown(socket.SHUT_WR)
        assert read_line(connection) == b"BYE\n"
        assert connection.recv(1) == b""
    wait_until(lambda: proxy.connections == 0, "the connection to be forgotten", LIMIT_SECONDS)


def test_much_goes_through(proxy: Proxy) -> None:
    line = b"x" * (10 * CHUNK_BYTES)
    with connected(proxy) as connection:
        sender = threading.Thread(target=connection.sendall, args=(line + b"\n",))
        sender.start()
        assert read_line(connection) == line.upper() + b"\n"
        sender.join(LIMIT_SECONDS)


def test_a_cut_resets_old_and_new_connections_until_it_passes_again(proxy: Proxy) -> None:
    with connected(proxy) as old:
        assert shout(old, b"hello") == b"HELLO\n"
        proxy.set_mode(Mode.CUT)
        assert is_reset(old)
        assert is_reset_at_once(proxy)
    proxy.set_mode(Mode.PASS)
    with connected(proxy) as again:
        assert shout(again, b"hello") == b"HELLO\n"


def test_a_black_hole_holds_what_is_sent_and_delivers_it_when_it_passes_again(proxy: Proxy) -> None:
    with connected(proxy) as old:
        assert shout(old, b"hello") == b"HELLO\n"
        proxy.set_mode(Mode.BLACK_HOLE)
        old.sendall(b"late\n")
        wait_until(lambda: proxy.held_bytes == len(b"late\n"), "the proxy to hold it", LIMIT_SECONDS)
        with connected(proxy) as new:
            new.sendall(b"new\n")
            new.settimeout(0.05)
            with pytest.raises(TimeoutError):
                new.recv(1)
            proxy.set_mode(Mode.PASS)
            new.settimeout(LIMIT_SECONDS)
            assert read_line(new) == b"NEW\n"
        assert read_line(old) == b"LATE\n"
        assert proxy.held_bytes == 0


def test_a_black_hole_delivers_what_a_sender_left_that_is_gone(proxy: Proxy, service: str, proxies: Proxies) -> None:
    received = proxies.open("before the proxy", proxy.address)
    with connected(received) as sender:
        assert shout(sender, b"hello") == b"HELLO\n"
        received.set_mode(Mode.BLACK_HOLE)
        sender.sendall(b"late\n")
        wait_until(lambda: received.held_bytes > 0, "the proxy to hold it", LIMIT_SECONDS)
    proxy.set_mode(Mode.BLACK_HOLE)
    received.set_mode(Mode.PASS)
    wait_until(lambda: proxy.held_bytes == len(b"late\n"), "the late line to arrive", LIMIT_SECONDS)


def test_a_cut_ends_what_a_black_hole_held(proxy: Proxy) -> None:
    proxy.set_mode(Mode.BLACK_HOLE)
    with connected(proxy) as connection:
        connection.sendall(b"never\n")
        wait_until(lambda: proxy.connections == 1, "the proxy to accept", LIMIT_SECONDS)
        proxy.set_mode(Mode.CUT)
        assert is_reset(connection)
    assert (proxy.held_bytes, proxy.connections) == (0, 0)


def test_a_slow_proxy_forwards_everything(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        proxy.set_mode(Mode.SLOW, delay_ms=20)
        assert shout(connection, b"hello") == b"HELLO\n"
        assert proxy.mode is Mode.SLOW


@pytest.mark.parametrize(("mode", "delay_ms"), [(Mode.SLOW, 0), (Mode.SLOW, -1), (Mode.SLOW, 10**6), (Mode.PASS, 5)])
def test_absurd_delays_are_refused(proxy: Proxy, mode: Mode, delay_ms: int) -> None:
    with pytest.raises(ValueError, match="a slow proxy has a delay"):
        proxy.set_mode(mode, delay_ms=delay_ms)


def test_a_proxy_resets_callers_while_there_is_nobody_behind_it(proxies: Proxies, service: str) -> None:
    proxy = proxies.open("the proxy")
    assert is_reset_at_once(proxy)
    proxy.set_target(service)
    with connected(proxy) as connection:
        assert shout(connection, b"hello") == b"HELLO\n"


@pytest.mark.parametrize("spoken_as", ["tls://", "framed+tls://"])
def test_a_proxy_is_spoken_to_as_what_it_stands_before(proxies: Proxies, service: str, spoken_as: str) -> None:
    proxy = proxies.open("the proxy", f"{spoken_as}{service}")
    assert proxy.address == f"{spoken_as}127.0.0.1:{proxy.port}"
    with connected(proxy) as connection:
        assert shout(connection, b"hello") == b"HELLO\n"


def test_the_end_of_a_service_reaches_its_clients(proxies: Proxies) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        proxy = proxies.open("the proxy", f"127.0.0.1:{server.getsockname()[1]}")
        with connected(proxy) as connection:
            accepted, _ = server.accept()
            accepted.close()
            assert connection.recv(1) == b""


def test_at_the_end_all_ports_are_closed(service: str) -> None:
    with Proxies() as proxies:
        proxy = proxies.open("the proxy", service)
        with connected(proxy) as connection:
            assert shout(connection, b"hello") == b"HELLO\n"
            proxies.close()
            assert is_reset(connection)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", proxy.port), LIMIT_SECONDS)
