"""Gateways that listen for HTTP, with Kerberos and without: what goes over the wire, and what is told of failures."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
from collections.abc import Iterator
from contextlib import closing
from threading import Event

import pytest
import uvloop

from access.gssapi import KerberosFailure
from access.services import GATEWAY, Kerberos, TlsFiles
from store import Cell, RowPut, StoreUnavailable
from store.columns import CellColumns
from store.hbase import HBaseCellStore, PoolSettings
from store.hbase.addresses import Address
from store.hbase.http import HttpTalk
from store.hbase.putter import GatewayPutter
from tests.certificates import Authority
from tests.tls_terminator import tls_before
from tests.unit.store.fake_gateway import HANG_UP, SILENCE, FakeGateway
from tests.unit.store.half_kerberos import Asked, HalfContext, silent_kdc, without_library
from tests.unit.store.http_door import HELLO_IN_A_HEADER, HttpDoor, http_before
from tests.unit.store.putting import lines
from tests.unit.store.test_gateway_kerberos import listening
from tests.unit.store.test_gateway_tls import DOORS, Door, put_by_the_event_loop, read

CELLS = {b"f:a": Cell(b"1", 5)}
SHORT_MS = 300
IMPATIENT = PoolSettings(unavailable_after_ms=1)


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return without_library(monkeypatch, [])


@pytest.fixture
def framed() -> Iterator[FakeGateway]:
    gateway = FakeGateway(framed=True)
    yield gateway
    gateway.stop()


@pytest.fixture(params=[False, True], ids=["as it is", "with Kerberos"])
def door(request: pytest.FixtureRequest, framed: FakeGateway) -> Iterator[HttpDoor]:
    with http_before(framed.port, kerberos=request.param) as door:
        yield door


@pytest.fixture
def address(door: HttpDoor) -> str:
    return f"{'kerberos+' if door.kerberos else ''}http://localhost:{door.port}"


@pytest.mark.parametrize("chunked", [False, True])
def test_cells_are_read_and_written(
    door: HttpDoor, address: str, framed: FakeGateway, asked: Asked, chunked: bool
) -> None:
    door.chunked = chunked
    read(address, IMPATIENT)
    put_by_the_event_loop(address, IMPATIENT, times=3)
    assert framed.methods.written == [(b"t", {b"r": {b"f:a": b"1"}}, 5)] * 3
    assert door.connections == 2, "requests go over the connections that there are"
    assert {headers["Host"] for headers in door.asked} == {f"localhost:{door.port}"}
    assert {headers["Content-Type"] for headers in door.asked} == {"application/x-thrift"}
    if door.kerberos:
        assert {headers["Authorization"] for headers in door.asked} == {HELLO_IN_A_HEADER}
        assert asked == [(Kerberos("HTTP"), GATEWAY, "localhost")] * len(door.asked), "each request shows anew who asks"
    else:
        assert not any("Authorization" in headers for headers in door.asked)


def test_rows_go_as_columns_too(address: str, framed: FakeGateway) -> None:
    rows = {b"row-%04d" % number: {b"f:a": b"x" * 100} for number in range(200)}
    with closing(HBaseCellStore(address, IMPATIENT)) as store:
        store.put_columns("t", CellColumns.of_puts([RowPut(row, cells) for row, cells in rows.items()]), 7)
    assert framed.methods.written == [(b"t", rows, 7)]


def test_a_host_of_another_script_is_named_as_dns_has_it() -> None:
    """Whatever the port makes of the length of its last part."""
    for host in ("bücher.example", "a" * 60):
        request = HttpTalk(Address(host, 9090, framed=True, http=True)).request(b"")
        assert b"\r\nhost: %s:9090\r\n" % host.encode("idna") in request.lower()


def test_tls_may_be_spoken_below_it(framed: FakeGateway, door: HttpDoor, authority: Authority) -> None:
    settings = dataclasses.replace(IMPATIENT, tls=TlsFiles(authority.certificate))
    with tls_before(door.port, authority.issue("local", "localhost")) as terminator:
        address = f"{'kerberos+' if door.kerberos else ''}https://localhost:{terminator.port}"
        read(address, settings)
        put_by_the_event_loop(address, settings, times=3)
        assert (terminator.handshakes, terminator.refused) == (2, 0)
    assert framed.methods.written == [(b"t", {b"r": {b"f:a": b"1"}}, 5)] * 3


@pytest.mark.parametrize(("said", "is_over"), [(b"", False), (b"Connection: close\r\n", True)])
def test_who_says_that_it_takes_no_more_is_asked_nothing_more(said: bytes, is_over: bool) -> None:
    talk = HttpTalk(Address("localhost", 9090, framed=True, http=True))
    talk.request(b"a question")
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n" + said + b"\r\na"
    assert b"".join(talk.unseal(answer[at : at + 1]) for at in range(len(answer))) == b"\0\0\0\1a"
    assert talk.is_over is is_over
    if is_over:
        with pytest.raises(ConnectionError, match="takes no more requests"):
            talk.request(b"another")
    else:
        assert talk.request(b"another").endswith(b"\r\n\r\nanother")


@pytest.mark.parametrize("lingers", [False, True])
def test_a_connection_that_takes_no_more_is_left(
    door: HttpDoor, address: str, framed: FakeGateway, lingers: bool
) -> None:
    door.closes, door.lingers = True, lingers
    with closing(HBaseCellStore(address, IMPATIENT)) as store:
        for _ in range(3):
            assert store.get("t", b"r", [b"f:a"]) == CELLS
    put_by_the_event_loop(address, IMPATIENT, times=3)
    assert framed.methods.written == [(b"t", {b"r": {b"f:a": b"1"}}, 5)] * 3
    assert door.connections == len(door.asked)


@pytest.mark.parametrize("fate", [HANG_UP, SILENCE])
def test_a_failure_is_followed_by_another_connection(address: str, framed: FakeGateway, fate: str) -> None:
    with closing(HBaseCellStore(address, PoolSettings(request_timeout_ms=SHORT_MS))) as store:
        assert store.get("t", b"r", [b"f:a"]) == CELLS
        framed.fates.append(fate)
        assert store.get("t", b"r", [b"f:a"]) == CELLS
        assert store.get("t", b"r", [b"f:a"]) == CELLS


@pytest.mark.parametrize("each", DOORS)
def test_what_it_says_of_a_failure_is_told(door: HttpDoor, address: str, each: Door) -> None:
    door.status = 503
    with pytest.raises(StoreUnavailable, match="it answered 503 Service Unavailable: the reason"):
        each(address, IMPATIENT)


@pytest.mark.parametrize("each", DOORS)
@pytest.mark.parametrize("shows", [b"", b"another's"])
def test_an_answer_of_somebody_else_is_not_believed(framed: FakeGateway, each: Door, shows: bytes) -> None:
    with http_before(framed.port, kerberos=True) as door:
        door.shows = shows
        with pytest.raises(StoreUnavailable, match="it has not shown by its answer who it is"):
            each(f"kerberos+http://localhost:{door.port}", IMPATIENT)


@pytest.mark.parametrize("each", DOORS)
def test_who_shows_nothing_where_it_is_asked_for_is_told_so(framed: FakeGateway, each: Door) -> None:
    with (
        http_before(framed.port, kerberos=True) as door,
        pytest.raises(StoreUnavailable, match=r"asks for Kerberos: its address has kerberos\+ before http"),
    ):
        each(f"http://localhost:{door.port}", IMPATIENT)


@pytest.mark.parametrize("each", DOORS)
def test_who_is_refused_is_told_so(framed: FakeGateway, each: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HalfContext, "step", lambda context, token: b"another ticket")
    with (
        http_before(framed.port, kerberos=True) as door,
        pytest.raises(StoreUnavailable, match="it answered 401 Unauthorized"),
    ):
        each(f"kerberos+http://localhost:{door.port}", IMPATIENT)


@pytest.mark.parametrize("each", DOORS)
def test_what_the_library_says_is_told_with_who_was_asked_for(
    framed: FakeGateway, each: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise KerberosFailure("Ticket expired")

    monkeypatch.setattr("access.kdc.context_for_connection", fails)
    with pytest.raises(StoreUnavailable, match=r"Kerberos with HTTP/localhost: Ticket expired"):
        each(f"kerberos+http://localhost:{framed.port}", IMPATIENT)


@pytest.mark.parametrize("each", DOORS)
def test_a_kdc_that_does_not_answer_is_waited_for_for_a_limited_time(
    framed: FakeGateway, each: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = dataclasses.replace(IMPATIENT, connect_timeout_ms=2_000, request_timeout_ms=SHORT_MS)
    with (
        silent_kdc(monkeypatch),
        pytest.raises(StoreUnavailable, match=f"no KDC has answered in 2000 ms|gave no answer in {SHORT_MS} ms"),
    ):
        each(f"kerberos+http://localhost:{framed.port}", settings)


def saying(words: bytes) -> Iterator[int]:
    """The port of somebody who says so to each request."""

    def say(accepted: socket.socket) -> None:
        accepted.recv(2**16)
        accepted.sendall(words)
        accepted.recv(2**16)

    return listening(say)


@pytest.fixture
def speaks_thrift() -> Iterator[int]:
    yield from saying(b"\x80\x01\x00\x02 something else\r\n\r\n")


@pytest.fixture
def speaks_http() -> Iterator[int]:
    yield from saying(b"HTTP/1.1 400 Illegal character\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize("each", DOORS)
def test_who_does_not_speak_http_is_told_so(each: Door, speaks_thrift: int) -> None:
    with pytest.raises(StoreUnavailable, match="it does not answer by HTTP"):
        each(f"http://localhost:{speaks_thrift}", IMPATIENT)


def test_who_speaks_http_is_told_so_to_who_does_not(speaks_http: int) -> None:
    with pytest.raises(StoreUnavailable, match="it speaks HTTP: its address is http://host:port"):
        read(f"localhost:{speaks_http}", IMPATIENT)


def test_a_write_whose_connection_is_lost_while_a_kdc_is_asked_goes_nowhere(
    framed: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on, waits = Event(), Event()

    def wait(*_: object) -> HalfContext:
        waits.set()
        may_go_on.wait(20)
        return HalfContext()

    monkeypatch.setattr("access.kdc.context_for_connection", wait)

    async def main(address: str) -> None:
        putter = GatewayPutter(address, IMPATIENT)
        put = asyncio.create_task(putter.put("t", lines(b"r"), lines(b"f:a"), lines(b"1"), 5))
        await asyncio.to_thread(waits.wait, 20)
        await putter.close()
        may_go_on.set()
        with pytest.raises(StoreUnavailable):
            await put

    with http_before(framed.port, kerberos=True) as door, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(f"kerberos+http://localhost:{door.port}"))
        assert not door.asked
    assert framed.methods.written == []
