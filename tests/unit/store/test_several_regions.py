"""Tables of several regions: made by a Thrift 2 gateway that leads to the same HBase, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from store import CannotPreSplit, Family, StoreError, StoreUnavailable, TableExists
from store.hbase import HBaseCellStore, PoolSettings
from store.hbase.addresses import BadAddress
from store.hbase.several_regions import _calls
from tests.unit.store.fake_gateway import HANG_UP, HANG_UP_AFTER, FakeGateway

SETTINGS = PoolSettings(unavailable_after_ms=200, connect_timeout_ms=500, request_timeout_ms=500)
FAMILIES = [Family("f"), Family("g", 3, 60)]
CALLS: Any = _calls()


class Administration:
    """Either gateway, as far as it is asked by this."""

    def __init__(self, kind: int, cluster: str = "here") -> None:
        self.kind = kind
        self.cluster = cluster
        self.asked: list[str] = []
        self.made: list[tuple[Any, list[bytes]]] = []
        self.refuses: list[Exception] = []

    def getThriftServerType(self) -> int:  # noqa: N802
        self.asked.append("type")
        return self.kind

    def getClusterId(self) -> str:  # noqa: N802
        self.asked.append("cluster")
        return self.cluster

    def createTable(self, descriptor: Any, split_keys: list[bytes]) -> None:  # noqa: N802
        self.asked.append("create")
        if self.refuses:
            raise self.refuses.pop(0)
        self.made.append((descriptor, split_keys))


def serving(methods: Administration) -> Iterator[FakeGateway]:
    fake = FakeGateway(service=CALLS.Thrift2)
    fake.methods = methods
    yield fake
    fake.stop()


@pytest.fixture
def thrift2() -> Iterator[FakeGateway]:
    yield from serving(Administration(CALLS.TThriftServerType.TWO))


@pytest.fixture
def thrift() -> Iterator[FakeGateway]:
    yield from serving(Administration(CALLS.TThriftServerType.ONE))


@pytest.fixture
def store(thrift: FakeGateway, thrift2: FakeGateway) -> Iterator[HBaseCellStore]:
    opened = HBaseCellStore(thrift.address, SETTINGS, thrift2=thrift2.address)
    yield opened
    opened.close()


def io_error(text: str, *, can_retry: bool | None) -> Exception:
    error: Exception = CALLS.TIOError(message=f"{text}\n\tat org.apache.hadoop.hbase.X".encode(), canRetry=can_retry)
    return error


def test_it_is_asked_for_what_was_said(store: HBaseCellStore, thrift: FakeGateway, thrift2: FakeGateway) -> None:
    store.create_table("space:t", FAMILIES, [b"b", b"\x00", b"a"])
    ((descriptor, split_keys),) = thrift2.methods.made
    assert (descriptor.tableName.ns, descriptor.tableName.qualifier) == (b"space", b"t")
    assert [(each.name, each.maxVersions, each.timeToLive) for each in descriptor.columns] == [
        (b"f", 2**31 - 1, 2**31 - 1),
        (b"g", 3, 60),
    ]
    assert split_keys == [b"\x00", b"a", b"b"]
    assert thrift.methods.asked == ["cluster"]
    store.create_table("t", FAMILIES, [b"a"])
    assert thrift2.methods.made[1][0].tableName.ns is None


def test_a_gateway_of_thrift_1_is_asked_for_no_table(thrift: FakeGateway) -> None:
    store = HBaseCellStore(thrift.address, SETTINGS, thrift2=thrift.address)
    with pytest.raises(CannotPreSplit, match=r"at 127\.0\.0\.1:\d+ is one of Thrift 1.*hbase thrift2 start"):
        store.create_table("t", FAMILIES, [b"a"])
    assert thrift.methods.asked == ["type"]
    store.close()


def test_nothing_is_made_in_another_hbase(store: HBaseCellStore, thrift2: FakeGateway) -> None:
    thrift2.methods.cluster = "elsewhere"
    refused = pytest.raises(CannotPreSplit, match=r"another HBase \(elsewhere\) than .* \(here\)")
    with refused:
        store.create_table("t", FAMILIES, [b"a"])
    with refused:
        store.require_thrift2()
    assert "create" not in thrift2.methods.asked


def test_it_can_be_looked_at_beforehand(store: HBaseCellStore, thrift2: FakeGateway) -> None:
    store.require_thrift2()
    assert thrift2.methods.asked == ["type", "cluster"]


def test_a_table_that_is_there_is_told_as_such(store: HBaseCellStore, thrift2: FakeGateway) -> None:
    thrift2.methods.refuses.append(io_error("org.apache.hadoop.hbase.TableExistsException: t", can_retry=False))
    with pytest.raises(TableExists):
        store.create_table("t", FAMILIES, [b"a"])


def test_an_answer_that_is_lost_is_asked_for_again(store: HBaseCellStore, thrift2: FakeGateway) -> None:
    """The second one is told that the table is there: whoever makes tables takes that for the end of its own try."""
    thrift2.fates.extend([None, None, HANG_UP_AFTER])
    store.create_table("t", FAMILIES, [b"a"])
    assert thrift2.methods.asked == ["type", "cluster", "create", "create"]


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("org.apache.hadoop.hbase.NamespaceNotFoundException: space", StoreError, "has no namespace space"),
        ("org.apache.hadoop.hbase.security.AccessDeniedException: no", StoreError, "HBase refuses it: .*AccessDenied"),
        ("java.lang.IllegalArgumentException: something", StoreError, "HBase refuses it: java.lang.IllegalArgument"),
    ],
)
def test_what_hbase_refuses_for_good_is_asked_once(
    store: HBaseCellStore, thrift2: FakeGateway, text: str, error: type[StoreError], words: str
) -> None:
    thrift2.methods.refuses.append(io_error(text, can_retry=False))
    with pytest.raises(error, match=words) as caught:
        store.create_table("space:t", FAMILIES, [b"a"])
    assert not isinstance(caught.value, StoreUnavailable)
    assert thrift2.methods.asked.count("create") == 1


@pytest.mark.parametrize("can_retry", [True, None])
def test_what_may_pass_is_asked_again(store: HBaseCellStore, thrift2: FakeGateway, can_retry: bool | None) -> None:
    thrift2.methods.refuses.append(io_error("org.apache.hadoop.hbase.PleaseHoldException", can_retry=can_retry))
    store.create_table("t", FAMILIES, [b"a"])
    assert thrift2.methods.asked.count("create") == 2


def test_a_gateway_that_does_not_answer_is_named(store: HBaseCellStore, thrift2: FakeGateway) -> None:
    thrift2.fates.extend([HANG_UP] * 1_000)
    with pytest.raises(StoreUnavailable, match=f"gateway at 127.0.0.1:{thrift2.port} has not served"):
        store.create_table("t", FAMILIES, [b"a"])


def test_a_table_of_one_region_needs_none_of_this(thrift2: FakeGateway, gateway: FakeGateway) -> None:
    store = HBaseCellStore(gateway.address, SETTINGS, thrift2=thrift2.address)
    store.create_table("t", FAMILIES)
    assert (gateway.methods.asked, thrift2.methods.asked) == (["createTable"], [])
    store.close()


def test_an_address_that_is_none_is_refused_before_anything() -> None:
    with pytest.raises(BadAddress):
        HBaseCellStore("127.0.0.1:1", thrift2="nowhere")
