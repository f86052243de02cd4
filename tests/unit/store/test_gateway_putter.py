"""Puts by the event loop, on gateways of our own that speak real Thrift: what is sent again, and what fails how."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from thriftpy2.thrift import TApplicationException

from store import InvalidCell, StoreError, StoreUnavailable, TableMissing
from store.hbase.putter import GatewayPutter
from store.hbase.thrift_types import GatewayIOError, IllegalArgument
from tests.unit.store.fake_gateway import (
    CUT,
    HANG_UP,
    HANG_UP_AFTER,
    RUBBISH,
    SILENCE,
    WRONG_NUMBER,
    FakeGateway,
    Fate,
)
from tests.unit.store.loop_clock import LoopClock
from tests.unit.store.putting import UNCLEAR, java, lines, put, refused, run, settings, silence


def written(value: bytes = b"1") -> tuple[bytes, dict[bytes, dict[bytes, bytes]], int]:
    return b"t", {b"r": {b"f:a": value}}, 5


@pytest.mark.parametrize("framed", [False, True])
def test_lines_of_one_row_are_written_together_over_one_connection(framed: bool) -> None:
    gateway = FakeGateway(framed=framed)

    async def test(putter: GatewayPutter) -> None:
        rows, columns = lines(b"r1", b"r1", b"r2"), lines(b"f:a", b"f:b", b"g:a")
        for timestamp in (5, 6):
            await putter.put("t", rows, columns, lines(b"1", b"2", b"3"), timestamp)

    run(test, gateway)
    rows = {b"r1": {b"f:a": b"1", b"f:b": b"2"}, b"r2": {b"g:a": b"3"}}
    assert gateway.methods.written == [(b"t", rows, 5), (b"t", rows, 6)]
    assert gateway.connections == 1
    gateway.stop()


@pytest.mark.parametrize("fate", [HANG_UP, HANG_UP_AFTER, CUT])
def test_a_kept_connection_that_turns_out_dead_is_replaced_at_once(gateway: FakeGateway, fate: str) -> None:
    async def test(putter: GatewayPutter) -> None:
        await put(putter)
        gateway.fates.append(fate)
        await put(putter, b"2")

    run(test, gateway)
    assert gateway.methods.written == [written(), *[written(b"2")] * (1 if fate == HANG_UP else 2)]
    assert gateway.connections == 2


def test_a_connection_that_was_hung_up_while_idle_is_replaced(gateway: FakeGateway) -> None:
    async def test(putter: GatewayPutter) -> None:
        await put(putter)
        await asyncio.to_thread(gateway.restart)
        await put(putter, b"2")

    run(test, gateway)
    assert gateway.methods.written == [written(b"2")]


@pytest.mark.parametrize("fate", [HANG_UP, HANG_UP_AFTER, CUT])
def test_a_fresh_connection_that_breaks_is_the_callers_concern(gateway: FakeGateway, fate: str) -> None:
    async def test(putter: GatewayPutter) -> None:
        gateway.fates.append(fate)
        await refused(putter, match="the connection to the HBase gateway at .* broke")
        assert gateway.connections == 1
        await put(putter)

    run(test, gateway)
    assert gateway.connections == 2


def test_it_is_sent_again_once_and_not_more_often(gateway: FakeGateway) -> None:
    async def test(putter: GatewayPutter) -> None:
        await put(putter)
        gateway.fates.extend([HANG_UP] * 3)
        await refused(putter)

    run(test, gateway)
    assert gateway.connections == 2
    assert len(gateway.fates) == 1


@pytest.mark.parametrize("kept", [False, True])
def test_silence_ends_the_put_and_the_connection(gateway: FakeGateway, kept: bool) -> None:
    async def test(putter: GatewayPutter) -> None:
        clock = LoopClock()
        if kept:
            await put(putter)
        assert "gave no answer in 10000 ms" in str(await silence(putter, gateway, clock))
        assert gateway.connections == 1
        await put(putter)

    run(test, gateway)
    assert gateway.connections == 2


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(("fate", "match"), [(WRONG_NUMBER, "no answer to request"), (RUBBISH, "sent a message")])
def test_a_wrong_answer_ends_the_put_and_the_connection(
    gateway: FakeGateway, fate: str, match: str, kept: bool
) -> None:
    async def test(putter: GatewayPutter) -> None:
        if kept:
            await put(putter)
        gateway.fates.append(fate)
        await refused(putter, match)
        assert gateway.connections == 1
        await put(putter)

    run(test, gateway)
    assert gateway.connections == 2


@pytest.mark.parametrize(
    ("fate", "error"),
    [
        (GatewayIOError(message=java("org.apache.hadoop.hbase.TableNotFoundException: t")), TableMissing),
        (GatewayIOError(message=java("…regionserver.NoSuchColumnFamilyException: Column family x")), TableMissing),
        (GatewayIOError(message=java("org.apache.hadoop.hbase.DoNotRetryIOException: too big")), StoreError),
        (IllegalArgument(message=java("java.lang.IllegalArgumentException: KeyValue size too large")), InvalidCell),
    ],
)
def test_a_refusal_is_an_answer_and_leaves_the_connection_sound(
    gateway: FakeGateway, fate: Fate, error: type[StoreError]
) -> None:
    async def test(putter: GatewayPutter) -> None:
        gateway.fates.append(fate)
        refusal = await refused(putter, error=error)
        assert "Some.java" not in str(refusal)
        assert not refusal.retriable
        await put(putter)

    run(test, gateway)
    assert gateway.connections == 1


def test_the_table_that_a_failed_put_does_not_name_is_asked_for(gateway: FakeGateway) -> None:
    async def test(putter: GatewayPutter) -> None:
        gateway.fates.append(UNCLEAR)
        gateway.fates.append(GatewayIOError(message=java("org.apache.hadoop.hbase.TableNotFoundException: t")))
        await refused(putter, error=TableMissing)
        assert gateway.methods.asked == ["mutateRowTs", "isTableEnabled"]
        gateway.fates.append(UNCLEAR)
        await refused(putter, match="RetriesExhausted")

    run(test, gateway)


@pytest.mark.parametrize("fate", [UNCLEAR, TApplicationException(6, "Internal error processing mutateRowTs")])
def test_what_may_pass_is_not_sent_again_by_itself(gateway: FakeGateway, fate: Fate) -> None:
    async def test(putter: GatewayPutter) -> None:
        gateway.fates.append(fate)
        assert (await refused(putter)).retriable
        await put(putter)

    run(test, gateway)
    assert gateway.methods.asked.count("mutateRowTs") <= 2


def test_what_no_store_can_hold_is_not_sent(gateway: FakeGateway) -> None:
    async def test(putter: GatewayPutter) -> None:
        with pytest.raises(InvalidCell, match="family:qualifier"):
            await putter.put("t", lines(b"r"), lines(b"fa"), lines(b"1"), 5)
        nothing = np.empty((0, 3), np.uint8)
        await putter.put("t", nothing, nothing, nothing, 5)

    run(test, gateway)
    assert gateway.connections == 0


def test_a_connection_older_than_the_limit_is_not_used_again(gateway: FakeGateway) -> None:
    now = 1_000

    async def test(putter: GatewayPutter) -> None:
        nonlocal now
        await put(putter)
        now += 44
        await put(putter)
        assert gateway.connections == 1
        now += 45
        await put(putter)
        assert gateway.connections == 2

    run(test, gateway, monotonic=lambda: now)


def test_never_more_connections_than_the_limit(gateway: FakeGateway) -> None:
    async def test(putter: GatewayPutter) -> None:
        await asyncio.gather(*(put(putter) for _ in range(40)))

    run(test, gateway, settings(connections_max=3))
    assert len(gateway.methods.written) == 40
    assert gateway.connections == 3


def test_a_wait_for_a_connection_has_an_end(gateway: FakeGateway) -> None:
    async def test(putter: GatewayPutter) -> None:
        gateway.fates.append(SILENCE)
        first = asyncio.create_task(put(putter))
        while not gateway.connections:
            await asyncio.sleep(0)
        await refused(putter, match="all 1 connections .* were in use for 20 ms")
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await put(putter)

    run(test, gateway, settings(connections_max=1, lease_wait_ms=20))
    assert gateway.methods.written == [written()]
    assert gateway.connections == 2, "a connection with an answer under way is not used again"


def test_close_ends_what_is_under_way_and_all_that_comes_later(gateway: FakeGateway) -> None:
    async def test(putter: GatewayPutter) -> None:
        await put(putter)
        gateway.fates.append(SILENCE)
        waiting = asyncio.create_task(put(putter))
        while gateway.fates:
            await asyncio.sleep(0)
        await putter.close()
        with pytest.raises(StoreUnavailable, match="closed"):
            await waiting
        await refused(putter, match="closed")

    run(test, gateway)
    assert gateway.connections == 1
