"""Gateways that ask for Kerberos: what is agreed on, sealed, and told where the two do not agree. No KDC is asked."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pytest
import uvloop

from access import kdc
from access.gssapi import KerberosFailure
from access.kerberos import BadKerberos
from access.sasl import Layer
from access.services import GATEWAY, Kerberos, TlsFiles
from client import ClientSettings, InvalidSettings, TransactionManager
from store import Cell, RowPut, StoreUnavailable
from store.hbase import HBaseCellStore, PoolSettings
from store.hbase.putter import GatewayPutter
from tests.certificates import Authority
from tests.tls_terminator import tls_before
from tests.unit.store.fake_gateway import HANG_UP, SILENCE, FakeGateway
from tests.unit.store.half_kerberos import Asked, HalfContext, kerberos_before, silent_kdc, without_library
from tests.unit.store.putting import lines
from tests.unit.store.test_gateway_tls import DOORS, Door, put_by_the_event_loop, read

CELLS = {b"f:a": Cell(b"1", 5)}
SHORT_MS = 300
FIELDS = [field.name for field in dataclasses.fields(Kerberos)]


def settings(connect_timeout_ms: int = 10_000, kerberos: Kerberos | None = None) -> PoolSettings:
    return PoolSettings(
        connect_timeout_ms=connect_timeout_ms, unavailable_after_ms=1, kerberos=kerberos or Kerberos("thrift")
    )


@pytest.fixture
def contexts() -> list[HalfContext]:
    """Of the connections, in their order."""
    return []


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch, contexts: list[HalfContext]) -> Asked:
    return without_library(monkeypatch, contexts)


@pytest.fixture
def framed() -> Iterator[FakeGateway]:
    gateway = FakeGateway(framed=True)
    yield gateway
    gateway.stop()


@pytest.mark.parametrize("layer", Layer)
def test_cells_are_read_and_written(framed: FakeGateway, layer: Layer, asked: Asked) -> None:
    with kerberos_before(framed.port, layer) as door:
        address = f"kerberos://localhost:{door.port}"
        read(address, settings())
        put_by_the_event_loop(address, settings(), times=3)
    assert [agreed[0] for agreed in door.agreed] == [layer, layer]
    assert asked == [(Kerberos("thrift"), GATEWAY, "localhost")] * 2
    assert framed.methods.written == [(b"t", {b"r": {b"f:a": b"1"}}, 5)] * 3


@pytest.mark.parametrize("layer", Layer)
def test_tls_may_be_spoken_before_it(framed: FakeGateway, layer: Layer, authority: Authority) -> None:
    both = dataclasses.replace(settings(), tls=TlsFiles(authority.certificate))
    with (
        kerberos_before(framed.port, layer) as door,
        tls_before(door.port, authority.issue("local", "localhost")) as terminator,
    ):
        address = f"kerberos+tls://localhost:{terminator.port}"
        read(address, both)
        put_by_the_event_loop(address, both, times=3)
        assert (terminator.handshakes, terminator.refused) == (2, 0)
    assert [agreed[0] for agreed in door.agreed] == [layer, layer]
    assert framed.methods.written == [(b"t", {b"r": {b"f:a": b"1"}}, 5)] * 3


def test_a_request_goes_in_parts_that_the_gateway_takes(framed: FakeGateway) -> None:
    rows = {b"row-%04d" % number: {b"f:a": b"x" * 100} for number in range(200)}
    puts = [RowPut(row, cells) for row, cells in rows.items()]
    with (
        kerberos_before(framed.port, Layer.CONFIDENTIALITY, takes_bytes_max=4_096) as door,
        closing(HBaseCellStore(f"kerberos://localhost:{door.port}", settings())) as store,
    ):
        store.put("t", puts, 7)
    assert framed.methods.written == [(b"t", rows, 7)]


@pytest.mark.parametrize("layer", Layer)
@pytest.mark.parametrize("fate", [HANG_UP, SILENCE])
def test_a_failure_is_followed_by_another_connection(framed: FakeGateway, layer: Layer, fate: str) -> None:
    with (
        kerberos_before(framed.port, layer) as door,
        closing(
            HBaseCellStore(f"kerberos://localhost:{door.port}", PoolSettings(request_timeout_ms=SHORT_MS))
        ) as store,
    ):
        assert store.get("t", b"r", [b"f:a"]) == CELLS
        framed.fates.append(fate)
        assert store.get("t", b"r", [b"f:a"]) == CELLS
        assert store.get("t", b"r", [b"f:a"]) == CELLS
    assert len(door.agreed) >= 2


@pytest.mark.parametrize("door", DOORS)
def test_an_answer_whose_seal_is_broken_is_none(framed: FakeGateway, door: Door) -> None:
    with kerberos_before(framed.port, Layer.INTEGRITY) as before:
        before.breaks_a_seal = True
        if door is read:  # which repeats what failed
            door(f"kerberos://localhost:{before.port}", settings())
            assert len(before.agreed) == 2
        else:
            with pytest.raises(StoreUnavailable, match="not sealed as it should be"):
                door(f"kerberos://localhost:{before.port}", settings())


def test_when_the_tickets_end_another_connection_is_made(framed: FakeGateway, contexts: list[HalfContext]) -> None:
    with (
        kerberos_before(framed.port, Layer.CONFIDENTIALITY) as door,
        closing(HBaseCellStore(f"kerberos://localhost:{door.port}", settings())) as store,
    ):
        assert store.get("t", b"r", [b"f:a"]) == CELLS
        contexts[0].has_ended = True
        assert store.get("t", b"r", [b"f:a"]) == CELLS
    assert len(contexts) == 2


def test_when_the_tickets_end_the_event_loop_makes_another_connection(
    framed: FakeGateway, contexts: list[HalfContext]
) -> None:
    async def main(address: str) -> None:
        putter = GatewayPutter(address, settings())
        for _ in range(2):
            await putter.put("t", lines(b"r"), lines(b"f:a"), lines(b"1"), 5)
            contexts[0].has_ended = True
        await putter.close()

    with (
        kerberos_before(framed.port, Layer.CONFIDENTIALITY) as door,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(main(f"kerberos://localhost:{door.port}"))
    assert len(contexts) == 2


def listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """The port of somebody who does ``serve`` with each who connects."""

    def accept() -> None:
        with suppress(OSError):  # the listener's end
            while True:
                accepted, _ = server.accept()
                with accepted:
                    serve(accepted)

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(accept)
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def refusing() -> Iterator[int]:
    def refuse(accepted: socket.socket) -> None:
        accepted.recv(2**16)
        accepted.sendall(b"\x03\0\0\0\x13GSS initiate failed")
        accepted.recv(2**16)

    yield from listening(refuse)


@pytest.fixture
def hanging_up() -> Iterator[int]:
    yield from listening(lambda accepted: print(accepted.recv(2**16)))


@pytest.fixture
def no_kdc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with silent_kdc(monkeypatch):
        yield


@pytest.mark.usefixtures("no_kdc")
@pytest.mark.parametrize("door", DOORS)
def test_a_kdc_that_does_not_answer_is_waited_for_for_a_limited_time(
    framed: FakeGateway, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And by so many connections at most; nor does a process, or an event loop, wait for it at its end."""
    monkeypatch.setattr(kdc, "WAITING_FOR_KDC_MAX", 3)
    address, impatient = f"kerberos://localhost:{framed.port}", settings(connect_timeout_ms=SHORT_MS)
    while len(kdc._waiting) < 3:
        with pytest.raises(StoreUnavailable, match=f"no KDC has answered in {SHORT_MS} ms|wait for a KDC already"):
            door(address, impatient)
    with pytest.raises(StoreUnavailable, match="3 connections wait for a KDC already"):
        door(address, impatient)
    assert all(thread.daemon for thread in kdc._waiting)


@pytest.mark.parametrize("door", DOORS)
def test_a_refusal_says_whom_it_was_asked_for_as(refusing: int, door: Door) -> None:
    words = r"refused Kerberos: GSS initiate failed; .* as thrift/localhost, of which PYTHIA_THRIFT_KERBEROS_SERVICE"
    with pytest.raises(StoreUnavailable, match=words):
        door(f"kerberos://localhost:{refusing}", settings())


@pytest.mark.parametrize("door", DOORS)
def test_who_hangs_up_is_taken_for_one_that_asks_for_none(hanging_up: int, door: Door) -> None:
    with pytest.raises(StoreUnavailable, match=r"hung up before Kerberos was agreed on: .* no kerberos://"):
        door(f"kerberos://localhost:{hanging_up}", settings())


@pytest.mark.parametrize("door", DOORS)
def test_who_says_nothing_is_given_up_after_a_limited_time(door: Door) -> None:
    """As HBase's own without Kerberos, which waits for more of what looks like the length of a message."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"kerberos://localhost:{silent.getsockname()[1]}"
        with pytest.raises(StoreUnavailable, match=r"agreed on in 1500 ms: .* no kerberos://"):
            door(address, settings(connect_timeout_ms=1_500))


def test_who_asks_for_kerberos_may_be_silent_to_who_speaks_none() -> None:
    """As HBase's own, which takes the start of a request for a length."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        impatient = PoolSettings(unavailable_after_ms=1, request_timeout_ms=SHORT_MS)
        with pytest.raises(StoreUnavailable, match="where it asks for Kerberos, its address begins with kerberos"):
            read(address, impatient)


@pytest.mark.parametrize("door", DOORS)
def test_what_the_library_says_is_told_with_who_was_asked_for(
    framed: FakeGateway, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise KerberosFailure("Ticket expired")

    monkeypatch.undo()
    monkeypatch.setattr("access.kerberos.require_library", lambda: None)
    monkeypatch.setattr("access.kerberos.SecurityContext", fails)
    address = f"kerberos://localhost:{framed.port}"
    words = r"Kerberos with thrift/localhost: Ticket expired \(tickets come by kinit, or by a key: PYTHIA_"
    with pytest.raises(StoreUnavailable, match=words):
        door(address, settings())
    words = r"Kerberos with hbase/localhost as etl@REALM by .*socket.py: Ticket expired$"
    with pytest.raises(StoreUnavailable, match=words):
        door(address, settings(kerberos=Kerberos("", "etl@REALM", socket.__file__)))


@pytest.mark.parametrize("field", FIELDS)
def test_what_is_for_kerberos_is_refused_where_no_address_says_so(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = rf"thrift_kerberos_{field} \({Kerberos.variable(GATEWAY, field)}\) is for a gateway that asks for Kerberos"
    for make in (HBaseCellStore, GatewayPutter):
        with pytest.raises(BadKerberos, match=words):
            make("127.0.0.1:1", PoolSettings(kerberos=Kerberos(**{field: "x"})))
    monkeypatch.setenv(Kerberos.variable(GATEWAY, field), "x")
    with pytest.raises(BadKerberos, match=words):
        HBaseCellStore("framed://127.0.0.1:1")


def test_what_settings_do_not_name_comes_from_the_environment(
    framed: FakeGateway, monkeypatch: pytest.MonkeyPatch, asked: Asked
) -> None:
    monkeypatch.setenv("PYTHIA_THRIFT_KERBEROS_SERVICE", "gate")
    monkeypatch.setenv("PYTHIA_THRIFT_KERBEROS_KEYTAB_FILE", socket.__file__)
    with kerberos_before(framed.port, Layer.NONE) as door:
        for each in DOORS:
            each(f"kerberos://localhost:{door.port}", settings(kerberos=Kerberos(principal="etl@REALM")))
    assert asked == [(Kerberos("gate", "etl@REALM", socket.__file__), GATEWAY, "localhost")] * 2


def test_what_no_kerberos_can_be_spoken_with_is_told_before_anything_is_asked() -> None:
    for given, words in (
        (Kerberos(keytab_file="/nowhere"), "thrift_kerberos_keytab_file: .*No such file or directory: '/nowhere'"),
        (Kerberos("hbase/host"), "thrift_kerberos_service is the first part .* as in hbase for hbase/host@REALM"),
        (Kerberos("hbase@host"), "not 'hbase@host'"),
    ):
        with pytest.raises(BadKerberos, match=words):
            HBaseCellStore("kerberos://127.0.0.1:1", settings(kerberos=given))
    with pytest.raises(InvalidSettings, match=r"thrift kerberos://a:1: thrift_kerberos_keytab_file: .*/nowhere"):
        TransactionManager.connect(ClientSettings("z:1", "kerberos://a:1", thrift_kerberos_keytab_file="/nowhere"))
