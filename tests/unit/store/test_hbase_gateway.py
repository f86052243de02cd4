"""What is repeated and what is not, and what each error becomes: on a gateway of our own that speaks real Thrift."""

from __future__ import annotations

import contextlib
import itertools
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from store import (
    Applied,
    Cell,
    Family,
    InvalidCell,
    KeyRange,
    RowPut,
    StoreError,
    StoreUnavailable,
    TableExists,
    TableMissing,
    Unknown,
)
from store.columns import CellColumns
from store.hbase import HBaseCellStore, PoolSettings, pool
from store.hbase.addresses import Address
from store.hbase.connection import GatewayConnection
from store.hbase.thrift_types import AlreadyExists, GatewayIOError, IllegalArgument
from tests.unit.store.fake_gateway import (
    BELOW_ZERO,
    BYTE_BY_BYTE,
    CUT,
    HANG_UP,
    HANG_UP_AFTER,
    RUBBISH,
    SILENCE,
    WRONG_NUMBER,
    FakeGateway,
    Fate,
)


@pytest.fixture
def store(gateway: FakeGateway) -> Iterator[HBaseCellStore]:
    opened = connected(gateway)
    yield opened
    opened.close()


def connected(gateway: FakeGateway, unavailable_after_ms: int = 10_000) -> HBaseCellStore:
    settings = PoolSettings(
        connections_max=2,
        connect_timeout_ms=1_000,
        request_timeout_ms=300,
        unavailable_after_ms=unavailable_after_ms,
        retry_wait_ms_max=20,
    )
    return HBaseCellStore(gateway.address, settings)


def get(store: HBaseCellStore) -> object:
    return store.get("t", b"r", [b"f:a"])


def compare_and_set(store: HBaseCellStore) -> object:
    return store.compare_and_set("t", b"r", check=b"f:a", expected=None, put=b"f:a", value=b"1")


CELLS = {b"f:a": Cell(b"1", 5)}


@pytest.mark.parametrize("fate", [HANG_UP, HANG_UP_AFTER, SILENCE, RUBBISH, WRONG_NUMBER, BELOW_ZERO, BYTE_BY_BYTE])
def test_a_read_is_repeated_on_a_fresh_connection(gateway: FakeGateway, store: HBaseCellStore, fate: str) -> None:
    get(store)
    gateway.fates.append(fate)
    assert get(store) == CELLS
    assert gateway.connections == 2


@pytest.mark.parametrize("fate", [HANG_UP, HANG_UP_AFTER])
def test_a_put_is_repeated_on_a_fresh_connection(gateway: FakeGateway, store: HBaseCellStore, fate: str) -> None:
    get(store)
    gateway.fates.append(fate)
    store.put("t", [RowPut(b"r", {b"f:a": b"1"})], 5)
    assert gateway.methods.asked.count("mutateRowTs") == (2 if fate == HANG_UP_AFTER else 1)
    assert gateway.connections == 2


def test_a_gateway_that_hangs_up_at_once_may_be_one_of_another_kind(gateway: FakeGateway) -> None:
    """A framed one does so, a compact one, and none of the non-blocking ones answers."""
    gateway.fates.extend([HANG_UP] * 9)
    with pytest.raises(StoreUnavailable, match="not started as HBase's Thrift 1 server with the binary protocol"):
        get(connected(gateway, unavailable_after_ms=50))


def test_a_gateway_that_has_answered_is_not_one_of_another_kind(gateway: FakeGateway, store: HBaseCellStore) -> None:
    get(store)
    gateway.fates.append(HANG_UP)
    answer = compare_and_set(store)
    assert isinstance(answer, Unknown)
    assert "Thrift 1" not in answer.reason


def test_why_no_connection_came_about_is_told(gateway: FakeGateway) -> None:
    gateway.stop()
    with pytest.raises(StoreUnavailable, match=rf"no connection to the HBase gateway at {gateway.address}: .*refused"):
        get(connected(gateway, unavailable_after_ms=50))


def test_it_goes_on_trying_within_its_limit(gateway: FakeGateway, store: HBaseCellStore) -> None:
    gateway.fates.extend([HANG_UP] * 6)
    assert get(store) == CELLS


@pytest.mark.parametrize(
    ("fate", "asked"),
    [
        (HANG_UP, 0),
        (HANG_UP_AFTER, 1),
        (SILENCE, 0),
        (RUBBISH, 0),
        (GatewayIOError(message=b"?"), 1),
        (WRONG_NUMBER, 1),
        (BELOW_ZERO, 1),
        (BYTE_BY_BYTE, 1),
    ],
)
def test_a_compare_and_set_is_never_sent_twice(
    gateway: FakeGateway, store: HBaseCellStore, fate: Fate, asked: int
) -> None:
    get(store)
    gateway.fates.append(fate)
    assert isinstance(compare_and_set(store), Unknown)
    assert gateway.methods.asked.count("checkAndPut") == asked
    assert not gateway.fates
    assert compare_and_set(store) == Applied()


def test_a_compare_and_set_meets_no_connection_that_was_hung_up_while_idle(
    gateway: FakeGateway, store: HBaseCellStore
) -> None:
    get(store)
    gateway.restart()
    assert compare_and_set(store) == Applied()


def test_a_compare_and_set_waits_for_a_gateway_that_cannot_be_reached(
    gateway: FakeGateway, store: HBaseCellStore
) -> None:
    gateway.stop()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(compare_and_set, store)
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.1)
        gateway.start()
        assert waiting.result(timeout=30) == Applied()


def test_a_compare_and_set_that_was_not_sent_is_not_unknown(gateway: FakeGateway) -> None:
    gateway.stop()
    with pytest.raises(StoreUnavailable, match="no connection to the HBase gateway"):
        compare_and_set(connected(gateway, unavailable_after_ms=50))


def test_a_restart_of_the_gateway_is_survived(gateway: FakeGateway, store: HBaseCellStore) -> None:
    get(store)
    gateway.stop()
    with ThreadPoolExecutor(3) as threads:
        waiting = [threads.submit(get, store) for _ in range(3)]
        gateway.start()
        assert [each.result(timeout=30) for each in waiting] == [CELLS] * 3


def test_no_gateway_is_unavailable_and_says_where_and_how_long(gateway: FakeGateway) -> None:
    gateway.stop()
    began_s = time.monotonic()
    with pytest.raises(
        StoreUnavailable, match=rf"127.0.0.1:{gateway.port} has not served the call for \d+ ms"
    ) as caught:
        get(connected(gateway, unavailable_after_ms=50))
    assert caught.value.retriable
    assert 50 <= told_ms(caught.value) <= 1000 * (time.monotonic() - began_s) + 1


def test_what_is_told_of_a_gateway_that_hangs_is_how_long_it_took() -> None:
    """Each request is waited for, however soon it is to be given up."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        store = HBaseCellStore(
            f"127.0.0.1:{silent.getsockname()[1]}", PoolSettings(request_timeout_ms=150, unavailable_after_ms=1)
        )
        with contextlib.closing(store), pytest.raises(StoreUnavailable) as caught:
            get(store)
    assert told_ms(caught.value) >= 300


def told_ms(error: StoreUnavailable) -> int:
    found = re.search(r"for (\d+) ms", str(error))
    assert found is not None, error
    return int(found[1])


def java(first_line: str) -> bytes:
    return f"{first_line}\n\tat org.apache.hadoop.hbase.Some.method(Some.java:1)\n\tat java.lang.Thread.run".encode()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (GatewayIOError(message=java("org.apache.hadoop.hbase.TableNotFoundException: t")), TableMissing),
        (GatewayIOError(message=java("…regionserver.NoSuchColumnFamilyException: Column family x")), TableMissing),
        (GatewayIOError(message=java("org.apache.hadoop.hbase.DoNotRetryIOException: too big")), StoreError),
        (GatewayIOError(message=java("…security.AccessDeniedException: not yours")), StoreError),
        (GatewayIOError(message=java("…quotas.SpaceLimitingException: due to a space quota.")), StoreError),
        (GatewayIOError(message=java("Failed 2 actions: Puts are disallowed due to a space quota.")), StoreError),
        (GatewayIOError(message=java("…quotas.QuotaExceededException: it would exceed the quota")), StoreError),
    ],
)
def test_an_error_that_will_not_pass_is_given_at_once(
    gateway: FakeGateway, store: HBaseCellStore, error: Exception, expected: type[StoreError]
) -> None:
    gateway.fates.append(error)
    with pytest.raises(StoreError) as caught:
        get(store)
    assert type(caught.value) is expected
    assert "Some.java" not in str(caught.value)
    assert not caught.value.retriable
    assert len(gateway.methods.asked) == 1
    get(store)
    assert gateway.connections == 1, "an answer leaves the connection sound"


def test_what_hbase_refuses_is_invalid(gateway: FakeGateway, store: HBaseCellStore) -> None:
    gateway.fates.append(IllegalArgument(message=java("java.lang.IllegalArgumentException: KeyValue size too large")))
    with pytest.raises(InvalidCell, match=r"KeyValue size too large$"):
        store.put("t", [RowPut(b"r", {b"f:a": b"1"})], 5)
    assert len(gateway.methods.asked) == 1


def test_a_namespace_that_is_missing_is_named_with_what_makes_it(gateway: FakeGateway, store: HBaseCellStore) -> None:
    exception = "org.apache.hadoop.hbase.NamespaceNotFoundException"
    gateway.fates.append(GatewayIOError(message=java(f"{exception}: {exception}: team")))
    with pytest.raises(StoreError, match=r"no namespace team, .*: create_namespace 'team' in HBase's shell") as caught:
        store.create_table("team:t", [Family("f")])
    assert not caught.value.retriable


@pytest.mark.parametrize(
    "first_line", ["NotServingRegionException: r", "PleaseHoldException: starting", "what is this"]
)
def test_an_error_that_may_pass_is_repeated(gateway: FakeGateway, store: HBaseCellStore, first_line: str) -> None:
    gateway.fates.extend([GatewayIOError(message=java(first_line))] * 3)
    assert get(store) == CELLS
    gateway.fates.extend([GatewayIOError(message=java(first_line))] * 1_000)
    with pytest.raises(StoreUnavailable) as caught:
        get(connected(gateway, unavailable_after_ms=50))
    assert first_line in str(caught.value)
    assert "Some.java" not in str(caught.value)


def test_the_table_that_a_failed_write_does_not_name_is_looked_for(gateway: FakeGateway, store: HBaseCellStore) -> None:
    gateway.fates.append(
        GatewayIOError(message=java("RetriesExhaustedWithDetailsException: Failed 1 action: t: 1 time"))
    )
    gateway.fates.append(GatewayIOError(message=java("org.apache.hadoop.hbase.TableNotFoundException: t")))
    with pytest.raises(TableMissing):
        store.put("t", [RowPut(b"r", {b"f:a": b"1"})], 5)


def test_a_write_that_failed_for_a_moment_is_repeated_by_who_may_only_read_and_write(
    gateway: FakeGateway, store: HBaseCellStore
) -> None:
    """HBase tells the families of a table to those who may create tables, and whether there is one to everybody."""

    def denied(*_: object) -> object:
        raise GatewayIOError(message=java("AccessDeniedException: Insufficient permissions (user=u, action=CREATE)"))

    gateway.methods.getColumnDescriptors = denied
    gateway.fates.append(GatewayIOError(message=java("Failed 1 action: RegionTooBusyException: 1 time")))
    store.put("t", [RowPut(b"r", {b"f:a": b"1"})], 5)
    assert gateway.methods.asked == ["mutateRowTs", "isTableEnabled", "mutateRowTs"]


def test_why_hbase_itself_has_given_up_is_told(gateway: FakeGateway) -> None:
    attempts = (
        "RetriesExhaustedException: Failed after attempts=16, exceptions:\n"
        "2026-11-24T01:56:02Z, RpcThrottlingException: number of read requests exceeded - wait 1min"
    )
    gateway.fates.extend([GatewayIOError(message=java(attempts))] * 1_000)
    with pytest.raises(StoreUnavailable, match=r"number of read requests exceeded - wait 1min$"):
        get(connected(gateway, unavailable_after_ms=50))


def test_a_table_that_exists_is_named_as_such(gateway: FakeGateway, store: HBaseCellStore) -> None:
    gateway.fates.append(AlreadyExists(message=b"table name already in use"))
    with pytest.raises(TableExists):
        store.create_table("t", [Family("f")])


def test_the_patience_for_tables_ends_with_the_call_however_it_ends(gateway: FakeGateway) -> None:
    """A connection that stayed patient would wait until the silent gateway itself hangs up."""
    connection = GatewayConnection(Address("127.0.0.1", gateway.port), PoolSettings(request_timeout_ms=300))
    with pytest.raises(TableExists), connection.patient():
        raise TableExists("t")
    gateway.fates.append(SILENCE)
    with pytest.raises(TimeoutError):
        connection.client.getTableNames()
    connection.close()


class TestRegions:
    WHOLE = (KeyRange(b"", b"f"), KeyRange(b"f", b"p"), KeyRange(b"p", b""))

    def test_a_region_with_replicas_is_one_range(self, gateway: FakeGateway, store: HBaseCellStore) -> None:
        gateway.methods.regions.append([*self.WHOLE, *reversed(self.WHOLE), *self.WHOLE])
        assert store.regions("t") == list(self.WHOLE)
        assert len(gateway.methods.asked) == 1

    @pytest.mark.parametrize(
        "named",
        [
            [(b"", b"f"), (b"p", b"")],
            [(b"f", b"p"), (b"p", b"")],
            [(b"", b"f"), (b"f", b"p")],
            [(b"", b"f"), (b"f", b"p"), (b"f", b"k"), (b"k", b"p"), (b"p", b"")],
            [(b"", b""), (b"", b"f"), (b"f", b"")],
        ],
    )
    def test_regions_with_a_gap_or_an_overlap_are_asked_for_again(
        self, gateway: FakeGateway, store: HBaseCellStore, named: list[tuple[bytes, bytes]]
    ) -> None:
        """As HBase's catalogue has them for a moment while a region splits."""
        gateway.methods.regions.extend([named, named, [*self.WHOLE]])
        assert store.regions("t") == list(self.WHOLE)
        assert len(gateway.methods.asked) == 3

    def test_regions_that_stay_apart_are_unavailable(self, gateway: FakeGateway) -> None:
        gateway.methods.regions.append([(b"", b"f"), (b"p", b"")])
        with pytest.raises(StoreUnavailable, match=r"the regions of table t do not follow each other at b'p'"):
            connected(gateway, unavailable_after_ms=50).regions("t")

    def test_no_regions_are_no_table(self, gateway: FakeGateway, store: HBaseCellStore) -> None:
        gateway.methods.regions.append([])
        with pytest.raises(TableMissing, match="there is no table t"):
            store.regions("t")
        assert len(gateway.methods.asked) == 1


class TestScans:
    ROWS = tuple(b"%03d" % number for number in range(20))

    @pytest.fixture(autouse=True)
    def _rows(self, gateway: FakeGateway) -> None:
        gateway.methods.tables = {
            b"t": list(self.ROWS),
            b"other": [b"%03d of another" % number for number in range(50)],
        }

    def scan(self, store: HBaseCellStore, batch_rows: int = 6) -> Iterator[bytes]:
        return (row for row, _ in store.scan("t", KeyRange(b"", b""), [b"f"], batch_rows=batch_rows))

    def test_each_row_once_and_the_scanner_closed(self, gateway: FakeGateway, store: HBaseCellStore) -> None:
        assert tuple(self.scan(store)) == self.ROWS
        assert gateway.methods.open_scanners() == 0

    @pytest.mark.parametrize("fate", [HANG_UP, HANG_UP_AFTER, SILENCE, GatewayIOError(message=b"?")])
    @pytest.mark.parametrize("request_number", range(6))
    def test_going_on_after_the_last_row_whichever_request_fails(
        self, gateway: FakeGateway, store: HBaseCellStore, request_number: int, fate: Fate
    ) -> None:
        gateway.fates.extend([*[None] * request_number, fate])
        assert tuple(self.scan(store)) == self.ROWS

    def test_a_scanner_the_gateway_dropped_is_opened_again(self, gateway: FakeGateway, store: HBaseCellStore) -> None:
        scan = self.scan(store)
        first = [next(scan) for _ in range(6)]
        gateway.methods.forget_scanners()
        assert (*first, *scan) == self.ROWS

    def test_after_a_restart_another_scan_of_the_same_number_is_left_alone(
        self, gateway: FakeGateway, store: HBaseCellStore
    ) -> None:
        scan = self.scan(store)
        first = [next(scan) for _ in range(6)]
        gateway.restart()
        others = store.scan("other", KeyRange(b"", b""), [b"f"], batch_rows=6)
        next(others)
        assert (*first, *scan) == self.ROWS
        assert sum(1 for _ in others) == 49

    def test_between_batches_the_connection_serves_other_calls(self, gateway: FakeGateway) -> None:
        """The store's patience is longer than a machine's pauses."""
        with contextlib.closing(HBaseCellStore(gateway.address)) as store:
            scans = [self.scan(store) for _ in range(4)]
            assert list(zip(*scans, strict=True)) == [(row,) * 4 for row in self.ROWS]
        assert gateway.connections == 1

    def test_a_scan_goes_on_with_another_connection_while_its_own_serves_a_slow_call(
        self, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pool, "PREFERRED_WAIT_MS", 5)
        store = HBaseCellStore(gateway.address, PoolSettings(connections_max=2))
        scan = self.scan(store)
        first = [next(scan) for _ in range(6)]
        may_answer = threading.Event()
        gateway.fates.append(may_answer)
        with ThreadPoolExecutor(1) as threads:
            slow = threads.submit(get, store)
            while gateway.fates:
                time.sleep(0.001)
            try:
                assert (*first, *scan) == self.ROWS
            finally:
                may_answer.set()
            assert slow.result(timeout=30) == CELLS
        assert gateway.connections == 2
        store.close()

    def test_rows_that_take_longer_than_a_request_are_waited_for(self, gateway: FakeGateway) -> None:
        """The same wait over and over would never see them: each new scanner begins at the same row."""
        gateway.methods.tables[b"t"] = list(self.ROWS[:1])
        gateway.methods.scan_takes_s = 0.5
        store = HBaseCellStore(gateway.address, PoolSettings(request_timeout_ms=200, unavailable_after_ms=1))
        assert tuple(self.scan(store)) == self.ROWS[:1]
        assert gateway.methods.rows_asked[:3] == [6, 1, 1]
        store.close()

    def test_what_fails_after_slow_answers_has_all_its_time(self, gateway: FakeGateway) -> None:
        gateway.fates.extend([None, SILENCE, None, SILENCE, None, HANG_UP])
        settings = PoolSettings(request_timeout_ms=200, administration_timeout_ms=5_000, unavailable_after_ms=300)
        store = HBaseCellStore(gateway.address, settings)
        assert tuple(self.scan(store)) == self.ROWS
        store.close()

    def test_the_wait_for_rows_ends_with_the_longest(self, gateway: FakeGateway) -> None:
        gateway.fates.extend([None, SILENCE] * 9)
        settings = PoolSettings(request_timeout_ms=200, administration_timeout_ms=500, unavailable_after_ms=1)
        store = HBaseCellStore(gateway.address, settings)
        with pytest.raises(StoreUnavailable):
            next(self.scan(store))
        assert len(gateway.fates) == 2 * (9 - 3), "it waited 200, 400 and 500 ms"
        store.close()

    def test_rows_that_come_slowly_come_one_by_one_at_last(self, gateway: FakeGateway) -> None:
        """The longest wait is enough for one row each, and for no more."""
        gateway.methods.tables[b"t"] = list(self.ROWS[:4])

        def slow(row: bytes) -> bytes:
            time.sleep(0.3)
            return row

        gateway.methods.value_of = slow
        settings = PoolSettings(request_timeout_ms=200, administration_timeout_ms=500, unavailable_after_ms=1)
        store = HBaseCellStore(gateway.address, settings)
        assert tuple(self.scan(store)) == self.ROWS[:4]
        store.close()

    @pytest.mark.parametrize("batch_rows", [1, 6])
    @pytest.mark.parametrize("value_bytes", [1, 300_000])
    def test_a_scan_ends_at_a_row_that_never_comes(
        self, gateway: FakeGateway, value_bytes: int, batch_rows: int
    ) -> None:
        tries = itertools.count()

        def broken_at_the_tenth(row: bytes) -> bytes:
            if row == self.ROWS[10] and next(tries) < 50:  # a scan that tries for ever is found out
                raise ConnectionResetError("the gateway breaks off")
            return bytes(value_bytes)

        gateway.methods.value_of = broken_at_the_tenth
        store = connected(gateway, unavailable_after_ms=50)
        with pytest.raises(StoreUnavailable):
            list(self.scan(store, batch_rows))
        store.close()

    def test_no_scan_of_the_gateway_leaves_a_region(self, gateway: FakeGateway, store: HBaseCellStore) -> None:
        """One that does so while the two are merged reads the second as it was when the first was as old."""
        cuts = [self.ROWS[4], self.ROWS[9]]
        gateway.methods.regions.append(list(zip([b"", *cuts], [*cuts, b""], strict=True)))
        for _ in range(2):
            gateway.methods.scanned.clear()
            assert tuple(self.scan(store)) == self.ROWS
            assert gateway.methods.scanned == [(b"", cuts[0]), (cuts[0], cuts[1]), (cuts[1], b"")]
        assert gateway.methods.asked.count("getTableRegions") == 1
        assert gateway.methods.open_scanners() == 0

    def test_a_scan_asks_nothing_more_where_no_key_can_follow(
        self, gateway: FakeGateway, store: HBaseCellStore
    ) -> None:
        """A scan from a key to itself would be, to HBase, one of that row."""
        key_range = KeyRange(self.ROWS[0], self.ROWS[2] + b"\x00")
        assert [row for row, _ in store.scan("t", key_range, [b"f"], batch_rows=1)] == list(self.ROWS[:3])
        assert gateway.methods.rows_asked == [1, 1, 1]

    def test_an_abandoned_scan_closes_its_scanner(self, gateway: FakeGateway, store: HBaseCellStore) -> None:
        scan = store.scan("t", KeyRange(b"", b""), [b"f"], batch_rows=6)
        next(scan)
        assert gateway.methods.open_scanners() == 1
        del scan
        assert gateway.methods.open_scanners() == 0

    def test_abandoned_when_the_gateway_is_gone_it_closes_quietly(
        self, gateway: FakeGateway, store: HBaseCellStore
    ) -> None:
        scan = store.scan("t", KeyRange(b"", b""), [b"f"], batch_rows=6)
        next(scan)
        gateway.stop()
        del scan


class TestScansOfColumns(TestScans):
    """The same of the form that goes past Thrift's library."""

    def scan(self, store: HBaseCellStore, batch_rows: int = 6) -> Iterator[bytes]:
        batches = store.scan_columns("t", KeyRange(b"", b""), [b"f"], [b"f:a"], batch_rows=batch_rows)
        return (row for batch in batches for row in batch.cells.row_keys())

    def test_rubbish_is_a_failure_of_the_connection(self, gateway: FakeGateway, store: HBaseCellStore) -> None:
        gateway.fates.extend([None, RUBBISH, None, CUT, None, WRONG_NUMBER, None, BELOW_ZERO, None, BYTE_BY_BYTE])
        assert tuple(self.scan(store)) == self.ROWS


@pytest.mark.parametrize("fate", [WRONG_NUMBER, BELOW_ZERO, BYTE_BY_BYTE])
def test_rows_put_as_columns_are_put_again_after_an_answer_that_is_none(
    gateway: FakeGateway, store: HBaseCellStore, fate: str
) -> None:
    columns = CellColumns.of_puts([RowPut(b"r", {b"f:a": b"1"})])
    gateway.fates.extend([None, fate])
    for _ in range(2):
        store.put_columns("t", columns, 5)
    assert gateway.methods.asked.count("mutateRowsTs") == 3
    assert gateway.connections == 2


def test_who_puts_columns_is_asked_before_each_request_and_before_each_repetition(
    gateway: FakeGateway, store: HBaseCellStore
) -> None:
    columns, asked = CellColumns.of_puts([RowPut(b"r", {b"f:a": b"1"})]), list[int]()

    def allow_two() -> None:
        get(store)  # it may ask the same store
        asked.append(gateway.methods.asked.count("mutateRowsTs"))
        if len(asked) == 3:
            raise ValueError("no more")

    gateway.fates.extend([None, HANG_UP_AFTER, None, HANG_UP_AFTER])
    with pytest.raises(ValueError, match="no more"):
        store.put_columns("t", columns, 5, before_each=allow_two)
    assert asked == [0, 1, 2]
    assert gateway.methods.asked.count("mutateRowsTs") == 2


def test_a_wrong_address_is_refused_before_anything_is_connected() -> None:
    for address in ("", "localhost", "localhost:", ":9090", "localhost:0", "localhost:99999", "localhost:port"):
        with pytest.raises(ValueError, match="host:port"):
            HBaseCellStore(address)
