"""Gateways that speak TLS: whom a client believes, what it shows, and what it is told where the two do not agree."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
import uvloop

from access.server_files import ServerFiles
from access.services import GATEWAY, TlsFiles
from access.tls import BadTls, server_context
from client import ClientSettings, InvalidSettings, TransactionManager
from store import Cell, StoreUnavailable
from store.hbase import HBaseCellStore, PoolSettings
from store.hbase.addresses import parse_addresses
from store.hbase.connection import GatewayConnection
from store.hbase.failures import GatewayFailure
from store.hbase.gateway import Gateway
from store.hbase.putter import GatewayPutter
from tests.certificates import Authority
from tests.tls_terminator import TlsTerminator, tls_before
from tests.unit.store.fake_gateway import HANG_UP, SILENCE, FakeGateway
from tests.unit.store.putting import lines

CELLS = {b"f:a": Cell(b"1", 5)}
SHORT_MS = 300


@pytest.fixture
def secured(gateway: FakeGateway, server_files: ServerFiles) -> Iterator[TlsTerminator]:
    with tls_before(gateway.port, server_files) as terminator:
        yield terminator


@pytest.fixture
def tls(authority: Authority) -> TlsFiles:
    return TlsFiles(authority.certificate)


def impatient(tls: TlsFiles, connect_timeout_ms: int = 10_000) -> PoolSettings:
    return PoolSettings(connect_timeout_ms=connect_timeout_ms, unavailable_after_ms=1, tls=tls)


def read(address: str, settings: PoolSettings) -> None:
    with closing(HBaseCellStore(address, settings)) as store:
        assert store.get("t", b"r", [b"f:a"]) == CELLS


def put_by_the_event_loop(address: str, settings: PoolSettings, times: int = 1) -> None:
    async def main() -> None:
        putter = GatewayPutter(address, settings)
        try:
            for _ in range(times):
                await putter.put("t", lines(b"r"), lines(b"f:a"), lines(b"1"), 5)
        finally:
            await putter.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as an oracle does
        runner.run(main())


Door = Callable[[str, PoolSettings], None]
DOORS: list[Door] = [read, put_by_the_event_loop]


@pytest.mark.parametrize("framed", [False, True])
def test_cells_are_read_and_written_over_tls(server_files: ServerFiles, tls: TlsFiles, framed: bool) -> None:
    gateway = FakeGateway(framed=framed)
    try:
        with tls_before(gateway.port, server_files) as terminator:
            address = f"{'framed+' if framed else ''}tls://127.0.0.1:{terminator.port}"
            read(address, impatient(tls))
            put_by_the_event_loop(address, impatient(tls), times=3)
            assert (terminator.handshakes, terminator.refused) == (2, 0)
            assert gateway.methods.written == [(b"t", {b"r": {b"f:a": b"1"}}, 5)] * 3
    finally:
        gateway.stop()


def test_a_connection_is_used_again_though_tls_has_spoken_in_between(
    gateway: FakeGateway, secured: TlsTerminator, tls: TlsFiles
) -> None:
    """TLS 1.3 sends the tickets of a session when it likes: bytes to read between two requests, which are no answer."""
    connection = GatewayConnection(parse_addresses(f"tls://127.0.0.1:{secured.port}")[0], impatient(tls))
    with closing(connection):
        plain = socket.socket(fileno=socket.dup(connection._connected.fileno()))
        with plain:
            plain.settimeout(10)
            assert plain.recv(1, socket.MSG_PEEK), "the tickets"
        assert connection.is_usable()
        connection.client.getTableNames()
        assert connection.is_usable()
        assert connection._connected.gettimeout() == PoolSettings().request_timeout_ms / 1_000
        secured.hang_up()
        with socket.socket(fileno=socket.dup(connection._connected.fileno())) as plain:
            plain.settimeout(10)
            plain.recv(1, socket.MSG_PEEK)  # until it has arrived
        assert not connection.is_usable()


def test_what_is_left_of_a_lost_answer_is_no_ticket(
    gateway: FakeGateway, secured: TlsTerminator, tls: TlsFiles
) -> None:
    connection = GatewayConnection(parse_addresses(f"tls://127.0.0.1:{secured.port}")[0], impatient(tls))
    with closing(connection):
        connection.client.getTableNames()
        connection.client._send("getTableNames")
        with socket.socket(fileno=socket.dup(connection._connected.fileno())) as plain:
            plain.settimeout(10)
            plain.recv(1, socket.MSG_PEEK)
        assert not connection.is_usable()


@pytest.mark.parametrize("fate", [HANG_UP, SILENCE])
def test_a_failure_over_tls_is_followed_by_another_connection(
    gateway: FakeGateway, secured: TlsTerminator, tls: TlsFiles, fate: str
) -> None:
    settings = PoolSettings(request_timeout_ms=SHORT_MS, tls=tls)
    with closing(HBaseCellStore(f"tls://127.0.0.1:{secured.port}", settings)) as store:
        assert store.get("t", b"r", [b"f:a"]) == CELLS
        gateway.fates.append(fate)
        assert store.get("t", b"r", [b"f:a"]) == CELLS
    assert secured.handshakes == 2


@pytest.mark.parametrize("door", DOORS)
def test_who_is_not_signed_by_the_authority_gets_nothing(
    gateway: FakeGateway, secured: TlsTerminator, tmp_path: Path, door: Door
) -> None:
    settings = impatient(TlsFiles(Authority(tmp_path / "other").certificate))
    with pytest.raises(StoreUnavailable, match="its certificate is not accepted"):
        door(f"tls://127.0.0.1:{secured.port}", settings)
    assert gateway.connections == 0


@pytest.mark.parametrize("door", DOORS)
def test_without_an_authority_the_systems_own_are_believed(
    gateway: FakeGateway, secured: TlsTerminator, door: Door, monkeypatch: pytest.MonkeyPatch, authority: Authority
) -> None:
    address, settings = f"tls://127.0.0.1:{secured.port}", impatient(TlsFiles())
    with pytest.raises(StoreUnavailable, match="its certificate is not accepted"):
        door(address, settings)
    assert gateway.connections == 0
    monkeypatch.setenv("SSL_CERT_FILE", authority.certificate)  # OpenSSL's, for those of the system
    door(address, settings)


@pytest.mark.parametrize("door", DOORS)
def test_the_certificate_has_to_name_the_host_or_the_name_that_is_set(
    gateway: FakeGateway, authority: Authority, tls: TlsFiles, door: Door
) -> None:
    with tls_before(gateway.port, authority.issue("named", "gateway.example")) as terminator:
        address = f"tls://127.0.0.1:{terminator.port}"
        with pytest.raises(StoreUnavailable, match=r"not accepted: IP address mismatch"):
            door(address, impatient(tls))
        door(address, impatient(dataclasses.replace(tls, server_name="gateway.example")))


@pytest.mark.parametrize("door", DOORS)
def test_a_gateway_that_asks_for_a_certificate_lets_in_who_has_one(
    gateway: FakeGateway, authority: Authority, server_files: ServerFiles, tls: TlsFiles, door: Door
) -> None:
    asking = dataclasses.replace(server_files, client_authority=authority.certificate)
    own = authority.issue("job", "job")
    with tls_before(gateway.port, asking) as terminator:
        address = f"tls://127.0.0.1:{terminator.port}"
        with pytest.raises(StoreUnavailable, match="hung up"):
            door(address, impatient(tls))
        assert gateway.connections == 0
        shown = dataclasses.replace(tls, certificate_file=own.certificate, key_file=own.key)
        door(address, impatient(shown))


def test_why_it_was_refused_is_told_where_the_other_side_says_it(
    authority: Authority, server_files: ServerFiles, tls: TlsFiles
) -> None:
    asking = server_context(dataclasses.replace(server_files, client_authority=authority.certificate))
    told = threading.Event()

    def refuse() -> None:
        accepted, _ = listening.accept()
        with asking.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False) as refusing:
            with pytest.raises(ssl.SSLError):
                refusing.do_handshake()
            assert told.wait(10)

    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        refused = pool.submit(refuse)
        words = r"it refused the TLS of this client \(TLSV13_ALERT_CERTIFICATE_REQUIRED\)"
        gateway = Gateway(f"tls://127.0.0.1:{listening.getsockname()[1]}", impatient(tls))
        with closing(gateway), pytest.raises(GatewayFailure, match=words):
            gateway.once(lambda connection: connection.client.getTableNames())
        told.set()
        refused.result()


def test_files_come_from_the_environment_where_no_setting_names_them(
    secured: TlsTerminator, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TlsFiles.variable(GATEWAY, "authority_file"), authority.certificate)
    for door in DOORS:
        door(f"tls://127.0.0.1:{secured.port}", impatient(TlsFiles()))


def test_files_are_read_again_for_each_connection(
    gateway: FakeGateway, secured: TlsTerminator, authority: Authority, tmp_path: Path
) -> None:
    file = tmp_path / "authority.pem"
    file.write_text(Path(authority.certificate).read_text())
    settings = impatient(TlsFiles(str(file)))
    with closing(HBaseCellStore(f"tls://127.0.0.1:{secured.port}", settings)) as store:
        assert store.get("t", b"r", [b"f:a"]) == CELLS
        file.unlink()
        assert store.get("t", b"r", [b"f:a"]) == CELLS, "the connection is there"
        gateway.fates.append(HANG_UP)
        with pytest.raises(StoreUnavailable, match=rf"authority {file}: No such file"):
            store.get("t", b"r", [b"f:a"])
        file.write_text(Path(authority.certificate).read_text())
        assert store.get("t", b"r", [b"f:a"]) == CELLS


@pytest.mark.parametrize("door", DOORS)
def test_a_gateway_in_clear_text_is_told_after_a_limited_time(gateway: FakeGateway, tls: TlsFiles, door: Door) -> None:
    """HBase's own waits for more of what looks like the length of a message."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tls://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(StoreUnavailable, match=rf"no TLS could be agreed on in {SHORT_MS} ms: .* no tls://"):
            door(address, impatient(tls, connect_timeout_ms=SHORT_MS))


@pytest.mark.parametrize("door", DOORS)
def test_who_hangs_up_on_tls_is_taken_for_one_in_clear_text(tls: TlsFiles, door: Door) -> None:
    """HBase's own does, where those bytes make a length that is too large for it."""

    def hang_up() -> None:
        with suppress(OSError):  # the listener's end
            while True:
                accepted, _ = listening.accept()
                with accepted:
                    accepted.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        pool.submit(hang_up)
        with pytest.raises(StoreUnavailable, match=r"hung up before TLS was agreed on: .* no tls://"):
            door(f"tls://127.0.0.1:{listening.getsockname()[1]}", impatient(tls))
        listening.shutdown(socket.SHUT_RDWR)


def test_a_gateway_that_speaks_tls_is_told_to_who_speaks_plain(secured: TlsTerminator) -> None:
    with pytest.raises(StoreUnavailable, match="tls://host:port"):
        read(f"127.0.0.1:{secured.port}", impatient(TlsFiles()))


def test_a_reset_before_any_answer_says_what_it_may_mean() -> None:
    """As stunnel's to who speaks plain."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = parse_addresses(f"127.0.0.1:{listening.getsockname()[1]}")[0]
        with closing(GatewayConnection(address, impatient(TlsFiles()))) as connection:
            accepted, _ = listening.accept()
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.send(b"a request")
            accepted.recv(1)
            accepted.close()
            with pytest.raises(EOFError, match="TLS before it: give tls://host:port"):
                connection.receive_into(memoryview(bytearray(8)))


def test_an_alert_of_tls_is_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = parse_addresses(f"127.0.0.1:{listening.getsockname()[1]}")[0]
        with closing(GatewayConnection(address, impatient(TlsFiles()))) as connection:
            accepted, _ = listening.accept()
            with accepted:
                accepted.sendall(b"\x15\x03\x01\x00\x02\x02\x16")  # a record of TLS: alert, fatal, record overflow
                with pytest.raises(ConnectionError, match="it speaks TLS: its address is tls://host:port"):
                    connection.client.getTableNames()


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(TlsFiles)])
def test_files_for_tls_are_refused_where_no_address_says_tls(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = rf"thrift_tls_{field} \({TlsFiles.variable(GATEWAY, field)}\) is for a gateway that speaks TLS"
    for make in (HBaseCellStore, GatewayPutter):
        with pytest.raises(BadTls, match=words):
            make("127.0.0.1:1", PoolSettings(tls=TlsFiles(**{field: "x"})))
    monkeypatch.setenv(TlsFiles.variable(GATEWAY, field), "x")
    with pytest.raises(BadTls, match=words):
        HBaseCellStore("127.0.0.1:1")


def test_what_no_tls_can_be_made_of_is_told_before_anything_is_asked(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for tls, words in (
        (TlsFiles(str(tmp_path / "none")), "none: No such file"),
        (TlsFiles(str(tmp_path / "empty")), "empty: "),
        (TlsFiles(authority.certificate, certificate_file=str(tmp_path / "none")), "certificate .*none"),
        (TlsFiles(authority.certificate, key_file="k"), r"a key \(k\) without its certificate"),
        (TlsFiles(authority.certificate, server_name=".x"), "'.x' cannot be the name in a certificate"),
    ):
        with pytest.raises(BadTls, match=words):
            HBaseCellStore("tls://127.0.0.1:1", PoolSettings(tls=tls))


def test_a_manager_is_not_made_of_files_that_cannot_be_used() -> None:
    with pytest.raises(InvalidSettings, match=r"thrift tls://a:1: authority /nowhere: No such file"):
        TransactionManager.connect(ClientSettings("z:1", "tls://a:1", thrift_tls_authority_file="/nowhere"))


def test_whoever_asked_for_tls_is_not_led_past_it_by_a_thrift_2_gateway(authority: Authority) -> None:
    settings = ClientSettings("z:1", "tls://a:1", thrift_tls_authority_file=authority.certificate, thrift2="b:1")
    with pytest.raises(InvalidSettings, match=r"thrift tls://a:1, thrift2 b:1: .*speaks TLS"):
        TransactionManager.connect(settings)
