"""Puts by the event loop to gateways of our own: what the tests of one gateway and of several share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
import pytest

from store import StoreError, StoreUnavailable
from store.hbase import PoolSettings
from store.hbase.putter import GatewayPutter
from store.hbase.thrift_types import GatewayIOError
from store.lines import ByteLines
from tests.unit.store.fake_gateway import SILENCE, FakeGateway
from tests.unit.store.loop_clock import LoopClock

REQUEST_TIMEOUT_MS = 10_000


def java(first_line: str) -> bytes:
    return f"{first_line}\n\tat org.apache.hadoop.hbase.Some.method(Some.java:1)".encode()


UNCLEAR = GatewayIOError(message=java("RetriesExhaustedWithDetailsException: Failed 1 action: t: 1 time"))


def settings(connections_max: int = 2, lease_wait_ms: int = 30_000) -> PoolSettings:
    return PoolSettings(
        connections_max=connections_max,
        connect_timeout_ms=10_000,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        lease_wait_ms=lease_wait_ms,
    )


def run(
    test: Callable[[GatewayPutter], Awaitable[None]],
    gateways: FakeGateway | Sequence[FakeGateway],
    chosen: PoolSettings | None = None,
    monotonic: Callable[[], float] | None = None,
) -> None:
    """The test on a putter that is closed at its end."""
    each = [gateways] if isinstance(gateways, FakeGateway) else gateways
    clock = {} if monotonic is None else {"monotonic": monotonic}

    async def main() -> None:
        putter = GatewayPutter(",".join(gateway.address for gateway in each), chosen or settings(), **clock)
        try:
            await test(putter)
        finally:
            await putter.close()

    asyncio.run(main())


def lines(*texts: bytes) -> ByteLines:
    return np.array([list(text) for text in texts], np.uint8)


async def put(putter: GatewayPutter, value: bytes = b"1") -> None:
    await putter.put("t", lines(b"r"), lines(b"f:a"), lines(value), 5)


async def refused(
    putter: GatewayPutter, match: str | None = None, error: type[StoreError] = StoreUnavailable
) -> StoreError:
    with pytest.raises(StoreError, match=match) as caught:
        await put(putter)
    assert isinstance(caught.value, error)
    return caught.value


async def silence(putter: GatewayPutter, gateway: FakeGateway, clock: LoopClock) -> StoreError:
    """How a put ends that the gateway leaves unanswered for too long."""
    gateway.fates.append(SILENCE)
    asked = asyncio.create_task(refused(putter))
    while gateway.fates:
        await asyncio.sleep(0)
    await clock.pass_ms(REQUEST_TIMEOUT_MS + 1)
    return await asked
