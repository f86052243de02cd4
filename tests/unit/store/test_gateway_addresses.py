"""Several gateways: the order in which they are tried, and blocking calls that go to those that serve."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from store import Cell, StoreUnavailable
from store.hbase import HBaseCellStore, PoolSettings
from store.hbase.addresses import Address, Addresses, BadAddress, parse_addresses
from store.hbase.connection import GatewayConnection
from store.hbase.gateway import Gateway
from store.hbase.thrift_types import GatewayIOError
from tests.unit.store.fake_gateway import HANG_UP, SILENCE, FakeGateway, Fate

A, B, C = (Address(host, 9090) for host in "abc")


def addresses(*each: Address) -> Addresses:
    return Addresses(each, avoid_failed_ms=5_000)


def test_addresses_are_read_from_text() -> None:
    assert parse_addresses("a:9090") == (A,)
    assert parse_addresses("a:9090, b:9090,c:9090") == (A, B, C)
    assert str(addresses(A, B)) == "a:9090,b:9090"


def test_the_transport_is_told_with_the_address() -> None:
    framed = parse_addresses("framed://a:9090,framed://b:9090")
    assert framed == (Address("a", 9090, framed=True), Address("b", 9090, framed=True))
    assert addresses(*framed).framed
    assert not addresses(A, B).framed
    assert parse_addresses(str(addresses(*framed))) == framed
    for mixed in (
        "a:9090,framed://b:9090",
        "tls://a:9090,b:9090",
        "tls://a:9090,framed+tls://b:9090",
        "kerberos://a:9090,framed://b:9090",
        "kerberos://a:9090,kerberos+tls://b:9090",
    ):
        with pytest.raises(ValueError, match=r"have the same transport, framed://, tls://, .* or none"):
            parse_addresses(mixed)


@pytest.mark.parametrize("framed", [False, True])
def test_whether_tls_is_spoken_is_told_with_the_address(framed: bool) -> None:
    before = "framed+tls://" if framed else "tls://"
    parsed = parse_addresses(f"{before}a:9090,{before}b:9090")
    assert parsed == (Address("a", 9090, framed, tls=True), Address("b", 9090, framed, tls=True))
    assert addresses(*parsed).tls
    assert not addresses(A, B).tls
    assert parse_addresses(str(addresses(*parsed))) == parsed


@pytest.mark.parametrize("tls", [False, True])
def test_whether_kerberos_is_asked_for_is_told_with_the_address(tls: bool) -> None:
    before = "kerberos+tls://" if tls else "kerberos://"
    parsed = parse_addresses(f"{before}a:9090,{before}b:9090")
    assert {address.transport for address in parsed} == {(True, tls, True, False)}, (
        "its frames have their length before them"
    )
    assert addresses(*parsed).kerberos
    assert addresses(*parsed).framed
    assert not addresses(A, B).kerberos
    assert parse_addresses(str(addresses(*parsed))) == parsed


@pytest.mark.parametrize("kerberos", [False, True])
@pytest.mark.parametrize("tls", [False, True])
def test_whether_http_is_spoken_is_told_with_the_address(kerberos: bool, tls: bool) -> None:
    before = f"{'kerberos+' if kerberos else ''}http{'s' if tls else ''}://"
    parsed = parse_addresses(f"{before}a:9090,{before}b:9090")
    assert {address.transport for address in parsed} == {(True, tls, kerberos, True)}
    assert addresses(*parsed).http
    assert not addresses(A, B).http
    assert parse_addresses(str(addresses(*parsed))) == parsed


@pytest.mark.parametrize("text", ["", "a", "a:", ":1", "a:0", "a:65536", "a:b", "a:1,", ",a:1", "a:1,b", "a:²"])
def test_what_is_no_list_of_addresses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is host:port, as in"):
        parse_addresses(text)


@pytest.mark.parametrize(
    "text",
    [
        "ftp://a:1",
        "framed+http://a:1",
        "http://a:1/x",
        "framed://",
        "framed://framed://a:1",
        "framed:a:1/",
        "tls://",
        "tls+framed://a:1",
        "TLS://a:1",
    ],
)
def test_what_is_no_transport_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is host:port, as in .*framed://host:port where its transport is framed"):
        parse_addresses(text)


def test_an_address_that_is_there_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="named once"):
        parse_addresses("a:1,b:1,a:1")
    with pytest.raises(ValueError, match="named once"):
        parse_addresses("a:1,framed://a:1")


def test_each_has_its_turn() -> None:
    order = addresses(A, B, C)
    assert [order.in_turn(0.0) for _ in range(4)] == [[A, B, C], [B, C, A], [C, A, B], [A, B, C]]


def test_those_that_failed_come_last_the_oldest_failure_first_and_the_others_share_the_turns() -> None:
    order = addresses(A, B, C)
    order.failed(B, 1_000.0)
    assert [order.in_turn(1_001.0) for _ in range(3)] == [[A, C, B], [C, A, B], [A, C, B]]
    order.failed(A, 1_002.0)
    assert order.in_turn(1_003.0) == [C, B, A]
    order.failed(C, 1_004.0)
    assert order.in_turn(1_005.0) == [B, A, C]


def test_a_failure_is_forgotten_after_its_time() -> None:
    order = addresses(A, B)
    order.failed(A, 1_000.0)
    assert {order.in_turn(5_999.0)[0] for _ in range(4)} == {B}
    assert {order.in_turn(6_000.0)[0] for _ in range(4)} == {A, B}
    order.failed(A, 6_001.0)
    assert {order.in_turn(6_002.0)[0] for _ in range(4)} == {B}


def test_a_single_address_is_tried_whatever_happened() -> None:
    order = addresses(A)
    order.failed(A, 0.0)
    assert order.in_turn(1.0) == [A]


class TestBlockingCalls:
    @pytest.fixture
    def gateways(self) -> Iterator[list[FakeGateway]]:
        fakes = [FakeGateway(), FakeGateway()]
        yield fakes
        for fake in fakes:
            fake.stop()

    def store(self, gateways: list[FakeGateway], unavailable_after_ms: int = 10_000) -> HBaseCellStore:
        settings = PoolSettings(
            connections_max=2,
            connect_timeout_ms=1_000,
            request_timeout_ms=1_000,
            unavailable_after_ms=unavailable_after_ms,
            retry_wait_ms_max=20,
        )
        return HBaseCellStore(",".join(gateway.address for gateway in gateways), settings)

    def gateway(self, gateways: list[FakeGateway]) -> Gateway:
        return Gateway(",".join(gateway.address for gateway in gateways), PoolSettings())

    def get(self, store: HBaseCellStore) -> None:
        assert store.get("t", b"r", [b"f:a"]) == {b"f:a": Cell(b"1", 5)}

    @pytest.mark.parametrize("gone", [0, 1])
    def test_one_that_is_gone_is_not_noticed(self, gateways: list[FakeGateway], gone: int) -> None:
        store = self.store(gateways, unavailable_after_ms=1)
        self.get(store)
        gateways[gone].stop()
        for _ in range(4):
            self.get(store)
        store.close()

    @pytest.mark.parametrize("fate", [HANG_UP, SILENCE, GatewayIOError(message=b"NotServingRegionException")])
    def test_a_failure_is_followed_by_another_gateway(self, gateways: list[FakeGateway], fate: Fate) -> None:
        store = self.store(gateways)
        self.get(store)
        gateways[0].fates.extend([fate] * 1_000)
        self.get(store)
        assert [gateway.connections for gateway in gateways] == [1, 1]
        store.close()

    def test_one_that_refuses_connections_is_not_asked_for_each_new_one(
        self, gateways: list[FakeGateway], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tried: list[int] = []

        def noted(address: Address, settings: PoolSettings, service: object) -> GatewayConnection:
            tried.append(address.port)
            return GatewayConnection(address, settings, service)

        monkeypatch.setattr("store.hbase.gateway.GatewayConnection", noted)
        gone, serving = gateways
        gone.stop()
        asked = self.gateway(gateways)
        asked.repeat(lambda _: asked.repeat(lambda _: asked.repeat(lambda _: None)))
        assert tried == [gone.port, serving.port, serving.port, serving.port]
        asked.close()

    def test_one_that_failed_is_not_asked_for_the_next_new_connection(self, gateways: list[FakeGateway]) -> None:
        failing, serving = gateways
        used: list[int] = []
        asked = self.gateway(gateways)

        def call(connection: GatewayConnection) -> None:
            used.append(connection.address.port)
            if connection.address.port == failing.port:
                raise ConnectionResetError
            asked.repeat(lambda inner: used.append(inner.address.port))

        asked.repeat(call)
        assert used == [failing.port, serving.port, serving.port]
        asked.close()

    def test_without_any_it_says_where_it_tried(self, gateways: list[FakeGateway]) -> None:
        for gateway in gateways:
            gateway.stop()
        store = self.store(gateways, unavailable_after_ms=50)
        with pytest.raises(StoreUnavailable, match=rf"{gateways[0].port},\S+{gateways[1].port} has not served .*, nor"):
            self.get(store)


@pytest.mark.parametrize("host", ["a..b", "a" * 64])
def test_what_cannot_be_a_host_is_refused_before_anybody_waits_for_it(host: str) -> None:
    with pytest.raises(BadAddress, match="cannot be the name of the host of HBase's Thrift gateway"):
        parse_addresses(f"a:9090,{host}:9090")
