"""Puts by the event loop to several gateways: spread while all serve, and without one that does not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Sequence

import pytest

from store.hbase import PoolSettings
from store.hbase.addresses import Address
from store.hbase.async_connection import AsyncConnection
from store.hbase.putter import GatewayPutter
from tests.unit.store.fake_gateway import FakeGateway
from tests.unit.store.loop_clock import LoopClock
from tests.unit.store.putting import UNCLEAR, put, refused, run, settings, silence


@pytest.fixture
def other() -> Iterator[FakeGateway]:
    fake = FakeGateway()
    yield fake
    fake.stop()


async def served_last(putter: GatewayPutter, gateways: Sequence[FakeGateway]) -> FakeGateway:
    """Put once, and tell whose connection was used: it is the first to be used again."""
    before = [len(gateway.methods.written) for gateway in gateways]
    await put(putter)
    return next(
        gateway for gateway, count in zip(gateways, before, strict=True) if len(gateway.methods.written) > count
    )


def test_connections_are_spread_over_the_gateways(gateway: FakeGateway, other: FakeGateway) -> None:
    async def test(putter: GatewayPutter) -> None:
        await asyncio.gather(*(put(putter) for _ in range(4)))

    run(test, [gateway, other], settings(connections_max=4))
    assert (gateway.connections, other.connections) == (2, 2)


def test_a_gateway_that_is_gone_is_not_noticed_while_another_serves(gateway: FakeGateway, other: FakeGateway) -> None:
    async def test(putter: GatewayPutter) -> None:
        await asyncio.gather(*(put(putter) for _ in range(2)))
        await asyncio.to_thread(gateway.stop)
        for _ in range(6):
            await asyncio.gather(*(put(putter) for _ in range(2)))

    run(test, [gateway, other])
    assert len(gateway.methods.written) + len(other.methods.written) == 14


def test_an_idle_connection_that_was_hung_up_is_passed_over(gateway: FakeGateway, other: FakeGateway) -> None:
    async def test(putter: GatewayPutter) -> None:
        await asyncio.gather(*(put(putter) for _ in range(2)))
        gone = await served_last(putter, [gateway, other])
        await asyncio.to_thread(gone.stop)
        while all(connection.is_usable for connection, _ in putter._idle):  # until the loop has read of it
            await asyncio.sleep(0.001)
        await put(putter)

    run(test, [gateway, other])
    assert (gateway.connections, other.connections) == (1, 1)


def test_after_a_silence_everything_goes_to_the_other_gateway(gateway: FakeGateway, other: FakeGateway) -> None:
    async def test(putter: GatewayPutter) -> None:
        clock = LoopClock()
        await asyncio.gather(*(put(putter) for _ in range(4)))
        silent = await served_last(putter, [gateway, other])
        await silence(putter, silent, clock)
        before = len(silent.methods.written)
        for _ in range(2):
            await asyncio.gather(*(put(putter) for _ in range(4)))
        assert len(silent.methods.written) == before

    run(test, [gateway, other], settings(connections_max=4))


def test_a_gateway_that_does_not_reach_hbase_is_left_for_the_other(gateway: FakeGateway, other: FakeGateway) -> None:
    async def test(putter: GatewayPutter) -> None:
        gateway.fates.extend([UNCLEAR] * 9)
        await refused(putter)
        await asyncio.gather(*(put(putter) for _ in range(4)))

    run(test, [gateway, other], settings(connections_max=4))
    assert len(other.methods.written) == 4


@pytest.mark.interpreted
def test_a_gateway_that_refuses_connections_is_not_asked_for_each_new_one(
    gateway: FakeGateway, other: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []
    really_open = AsyncConnection.open

    def noted(address: Address, chosen: PoolSettings) -> Awaitable[AsyncConnection]:
        tried.append(address.port)
        return really_open(address, chosen)

    async def test(putter: GatewayPutter) -> None:
        await put(putter)
        await asyncio.gather(*(put(putter) for _ in range(4)))

    monkeypatch.setattr(AsyncConnection, "open", noted)
    gateway.stop()
    run(test, [gateway, other], settings(connections_max=4))
    assert tried == [gateway.port, *[other.port] * 4]


def test_without_any_gateway_it_says_where_it_tried(gateway: FakeGateway, other: FakeGateway) -> None:
    gateway.stop()
    other.stop()

    async def test(putter: GatewayPutter) -> None:
        await refused(putter, rf"no connection to the HBase gateway at \S+{gateway.port}: .*, nor at \S+{other.port}: ")

    run(test, [gateway, other])
