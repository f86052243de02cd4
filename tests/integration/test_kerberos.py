"""HBase and ZooKeeper that ask everybody for Kerberos: cells, znodes, oracles, REST, programs, commands, a job; and who
has none.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import uvloop
from click.testing import CliRunner

from access.services import GATEWAY, ZOOKEEPER, Kerberos
from client import ClientSettings, StoreUnavailable, TransactionManager
from client.checkup.commands import check
from lease import CoordinatorRefused, CoordinatorUnavailable, ZnodePaths, members
from lease.coordinator import SetData
from lease.protection import protect, require_protection
from lease.zookeeper import ZooKeeperCoordinator
from store import ALL_ROWS, Cell, CellStore, Family, RowPut, StoreError, TableMissing
from store.columns import CellColumns
from store.hbase import HBaseCellStore, PoolSettings
from store.hbase.putter import GatewayPutter
from tests.conftest import Services
from tests.integration.command_processes import Command
from tests.integration.oracle_processes import OracleWithRest, flags_of
from tests.integration.test_rest import until_status
from tests.kerberos.cluster import CLIENT, GUEST, SERVICE, Kerberized, of_gateway
from tests.kerberos.realm import NAME
from tests.spark_jobs.examples import run_example
from tests.unit.client_tables.test_table_prepare import write_with_records
from tests.unit.store.putting import lines
from tso.commands.serve import tso

pytestmark = [pytest.mark.integration, pytest.mark.takes_minutes]

ROWS = 3_000


def pool(kerberos: Kerberos, **limits: int) -> PoolSettings:
    return PoolSettings(kerberos=kerberos, **limits)  # type: ignore[arg-type]


@pytest.fixture(params=["plain", "sealed", "by_http"])
def gateway(request: pytest.FixtureRequest, kerberized: Kerberized) -> str:
    """Frames as they are, encrypted ones, and HTTP."""
    address: str = getattr(kerberized, request.param)
    return address


@pytest.fixture
def store(gateway: str, kerberized: Kerberized) -> Iterator[CellStore]:
    with closing(HBaseCellStore(gateway, pool(of_gateway(kerberized.kerberos, gateway)))) as opened:
        yield opened


@pytest.fixture
def table(store: CellStore) -> Iterator[str]:
    name = f"kerberized_{uuid.uuid4().hex[:8]}"
    store.create_table(name, [Family("f")])
    yield name
    store.drop_table(name)


def test_rows_are_read_as_they_were_written(store: CellStore, table: str) -> None:
    """Requests and answers larger than what the gateway takes in one sealed frame, row by row and as columns."""
    values = {b"row-%06d" % number: os.urandom(300) for number in range(ROWS)}
    puts = [RowPut(row, {b"f:v": value}) for row, value in values.items()]
    store.put(table, puts, 7)
    store.put_columns(table, CellColumns.of_puts([RowPut(b"c-" + put.row, put.columns) for put in puts]), 8)
    by_rows = dict(store.scan(table, ALL_ROWS, [b"f:v"]))
    assert by_rows == {row: {b"f:v": Cell(value, 7)} for row, value in values.items()} | {
        b"c-" + row: {b"f:v": Cell(value, 8)} for row, value in values.items()
    }
    by_columns = [part.cells for part in store.scan_columns(table, ALL_ROWS, [b"f:v"], [b"f:v"])]
    assert [put.row for cells in by_columns for put in cells.puts()] == sorted(by_rows)
    large = os.urandom(2_000_000)
    store.put(table, [RowPut(b"large", {b"f:v": large})], 9)
    assert store.get(table, b"large", [b"f:v"]) == {b"f:v": Cell(large, 9)}
    with pytest.raises(TableMissing):
        store.get(f"{table}_none", b"large", [b"f:v"])


def test_the_event_loop_writes(store: CellStore, table: str, gateway: str, kerberized: Kerberized) -> None:
    async def main() -> None:
        putter = GatewayPutter(gateway, pool(of_gateway(kerberized.kerberos, gateway)))
        try:
            puts = (putter.put(table, lines(b"r%d" % n), lines(b"f:a"), lines(b"%d" % n), 5) for n in range(20))
            await asyncio.gather(*puts)
        finally:
            await putter.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
    assert store.get_many(table, [b"r%d" % n for n in range(20)], [b"f:a"]) == {
        b"r%d" % n: {b"f:a": Cell(b"%d" % n, 5)} for n in range(20)
    }


def settings_by(kerberos: Kerberos) -> dict[str, str]:
    """Those that say who one is, to HBase and to ZooKeeper."""
    to_hbase = {Kerberos.setting(GATEWAY, name): value for name, value in kerberos.named().items()}
    return to_hbase | {
        Kerberos.setting(ZOOKEEPER, name): value for name, value in at_zookeeper(kerberos).named().items()
    }


def at_zookeeper(kerberos: Kerberos) -> Kerberos:
    """The same, to a ZooKeeper under its usual name."""
    return replace(kerberos, service="")


def guest_of(kerberized: Kerberized) -> Kerberos:
    """Who has been granted nothing yet."""
    return replace(kerberized.kerberos, principal=kerberized.kerberos.principal.replace(CLIENT, GUEST))


@pytest.fixture
def named(kerberized: Kerberized) -> dict[str, str]:
    """The settings that say who may do everything."""
    return settings_by(kerberized.kerberos)


@pytest.fixture
def settings(kerberized: Kerberized, named: dict[str, str]) -> ClientSettings:
    root = f"/kerberized-{uuid.uuid4().hex[:8]}"
    return ClientSettings(kerberized.zookeeper, kerberized.sealed, root, **named)  # type: ignore[arg-type]


@pytest.fixture
def oracle(settings: ClientSettings, named: dict[str, str]) -> Iterator[OracleWithRest]:
    serving = OracleWithRest("a", settings, *flags_of(named))
    try:
        serving.until_primary()
        yield serving
    finally:
        serving.end()


@pytest.fixture
def named_by_environment(kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in settings_by(kerberized.kerberos).items():
        monkeypatch.setenv(f"PYTHIA_{name.upper()}", value)


@pytest.mark.usefixtures("named_by_environment")
def test_programs_rest_commands_and_jobs_reach_the_tables(oracle: OracleWithRest, settings: ClientSettings) -> None:
    with TransactionManager.connect(settings) as manager:
        manager.create_table("accounts", ["f"])
        with manager.transaction() as transaction:
            transaction.put("accounts", b"alice", {b"f:balance": b"70"})
        until_status(oracle.client, "GET", "/v1/health/ready", 200)
        at = oracle.client.post("/v1/oracle/snapshot").json()["snapshot"]
        row = oracle.client.get(f"/v1/snapshots/{at}/tables/accounts/rows/alice")
        assert row.json()["values"] == {"f:balance": "70"}
    assert Command(settings, "table").done("describe", "accounts")["table"] == "accounts"
    place = ["--zookeeper", settings.zookeeper, "--thrift", settings.thrift, "--root", settings.root]
    looked = CliRunner().invoke(check, [*place, "accounts", "--json"])
    assert {each["state"] for each in json.loads(looked.stdout)["findings"]} == {"fine"}, looked.output
    assert "ada" in run_example("multi_table_etl", settings)


def grant(store: CellStore, user: str, tables: Iterable[str]) -> None:
    """To read and to write, as HBase's shell grants it: by HBase's own table, in which HBase looks."""
    for table in tables:
        store.put("hbase:acl", [RowPut(table.encode(), {b"l:" + user.encode(): b"RW"})], int(time.time() * 1_000))


@pytest.mark.usefixtures("named_by_environment")
def test_once_an_administrator_has_prepared_the_tables_reading_and_writing_is_enough(
    settings: ClientSettings, kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the oracle, too: nobody else makes a table, or asks what only those are told who may."""
    guest = settings_by(guest_of(kerberized))
    as_guest = replace(settings, **guest)  # type: ignore[arg-type]
    with TransactionManager.connect(settings) as manager:
        prepared = Command(settings, "table").done("prepare")
        assert prepared["made"] == prepared["own_tables"]
        manager.create_table("t", ["f"])
        grant(manager.store, GUEST, [*prepared["own_tables"], "t"])
    oracle = OracleWithRest("a", as_guest, *flags_of(guest))
    try:
        oracle.until_primary()
        with TransactionManager.connect(as_guest) as manager:
            write_with_records(manager)
            with pytest.raises(StoreError, match=rf"AccessDenied.* \(user={GUEST}, .*action=CREATE"):
                manager.create_table("another", ["f"])
        for name, value in guest.items():
            monkeypatch.setenv(f"PYTHIA_{name.upper()}", value)
        with TransactionManager.connect(settings) as manager:
            manager.create_table("not_granted", ["f"])
        place = ["--zookeeper", settings.zookeeper, "--thrift", settings.thrift, "--root", settings.root]
        looked = CliRunner().invoke(check, [*place, "t", "not_granted", "--json"])
        told = {each["subject"]: each for each in json.loads(looked.stdout)["findings"]}
        assert [subject for subject, each in told.items() if each["state"] != "fine"] == ["table not_granted"]
        assert "HBase has no such table, or shows none to whoever this is" in told["table not_granted"]["words"]
    finally:
        oracle.end()


def session_of(settings: ClientSettings, kerberos: Kerberos) -> ZooKeeperCoordinator:
    return ZooKeeperCoordinator(settings.zookeeper, kerberos=at_zookeeper(kerberos))


@pytest.mark.usefixtures("named_by_environment")
def test_the_znodes_are_for_the_principal_of_the_oracles_to_change(
    oracle: OracleWithRest, settings: ClientSettings, kerberized: Kerberized
) -> None:
    """Whom ZooKeeper knows as somebody else reads where the primary is, and changes nothing."""
    node = ZnodePaths(settings.root).lease
    with session_of(settings, kerberized.kerberos) as ours:
        require_protection(ours, settings.root)
    with session_of(settings, guest_of(kerberized)) as theirs:
        assert [member.role for member in members(theirs, settings.root)] == ["primary"]
        with pytest.raises(CoordinatorRefused, match=f"refuses to have {node} written with .NoAuthError"):
            theirs.commit([SetData(node, b"", None)], timeout_ms=5_000)
        words = f"is not for {GUEST}@{NAME} by Kerberos to change, but for sasl:{CLIENT}@{NAME}: the principal is not"
        with pytest.raises(CoordinatorRefused, match=words):
            require_protection(theirs, settings.root, may_be_open=True)
        with pytest.raises(
            CoordinatorRefused,
            match=f"not known to ZooKeeper as this session is, {GUEST}@{NAME} by Kerberos, and .*: a-",
        ):
            protect(theirs, settings.root)
    status = CliRunner().invoke(tso, ["status", "--zookeeper", settings.zookeeper, "--root", settings.root, "--json"])
    assert [member["role"] for member in json.loads(status.output)["members"]] == ["primary"]


@pytest.mark.usefixtures("named_by_environment")
def test_a_standby_takes_over_where_znodes_are_protected_by_kerberos(
    oracle: OracleWithRest, settings: ClientSettings, named: dict[str, str]
) -> None:
    standby = OracleWithRest("b", settings, *flags_of(named))
    try:
        with TransactionManager.connect(settings) as manager:
            manager.create_table("failover", ["f"])
            with manager.transaction() as transaction:
                transaction.put("failover", b"r", {b"f:a": b"before"})
                oracle.end(signal.SIGKILL)
            standby.until_primary()
            with manager.transaction() as transaction:
                assert transaction.get("failover", b"r") == {b"f:a": b"before"}
    finally:
        standby.end()


def test_who_has_no_session_with_zookeeper_is_told_why(settings: ClientSettings, kerberized: Kerberized) -> None:
    nobody, bare = f"nobody@{NAME}", settings.zookeeper.removeprefix("kerberos://")
    for wrong, words in (
        (
            replace(kerberized.kerberos, principal=nobody),
            f"Kerberos with zookeeper/localhost as {nobody} by .*keytab: ",
        ),
        (Kerberos(keytab_file=kerberized.kerberos.keytab_file, service="other"), "other/localhost .*not found in Ker"),
    ):
        with pytest.raises(CoordinatorUnavailable, match=words):
            ZooKeeperCoordinator(
                settings.zookeeper, kerberos=wrong if wrong.service == "other" else at_zookeeper(wrong)
            )
    with (
        ZooKeeperCoordinator(bare) as unknown,
        pytest.raises(
            CoordinatorUnavailable, match="without Kerberos: where it asks for that, its address begins with"
        ),
    ):
        unknown.children("/", timeout_ms=5_000)


def names_of(address: str, kerberos: Kerberos, connect_timeout_ms: int = 10_000) -> list[str]:
    impatient = pool(kerberos, unavailable_after_ms=1, connect_timeout_ms=connect_timeout_ms)
    with closing(HBaseCellStore(address, impatient)) as store:
        return sorted(store.table_names())


def test_the_tickets_of_the_environment_are_used(
    kerberized: Kerberized, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As kinit leaves them; here the library itself has fetched them, by the key that the environment names to it."""
    nobody, cache = Kerberos(SERVICE), tmp_path / "tickets"
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{cache}")
    with pytest.raises(StoreUnavailable, match=r"No Kerberos credentials available .*\(tickets come by kinit"):
        names_of(kerberized.plain, nobody)
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", f"FILE:{kerberized.realm.keytab}")
    assert names_of(kerberized.plain, replace(nobody, principal=kerberized.kerberos.principal)) is not None
    monkeypatch.delenv("KRB5_CLIENT_KTNAME")
    assert cache.exists()
    assert names_of(kerberized.sealed, nobody) is not None


def test_hbase_sees_who_asks(gateway: str, kerberized: Kerberized) -> None:
    """And not the gateway: what is granted there is granted to each by itself, and what is not is no reason to wait."""
    with (
        closing(HBaseCellStore(gateway, pool(of_gateway(guest_of(kerberized), gateway)))) as store,
        pytest.raises(StoreError, match=rf"AccessDenied.* \(user={GUEST}, .*action=CREATE") as caught,
    ):
        store.create_table("a_table_of_a_guest", [Family("f")])
    assert not isinstance(caught.value, StoreUnavailable)


def test_a_thrift_2_gateway_makes_tables_for_whoever_may(kerberized: Kerberized) -> None:
    def store_of(kerberos: Kerberos) -> closing[HBaseCellStore]:
        return closing(HBaseCellStore(kerberized.plain, pool(kerberos), thrift2=kerberized.thrift2))

    name = f"parted_{uuid.uuid4().hex[:8]}"
    with store_of(guest_of(kerberized)) as store, pytest.raises(StoreError, match=rf"AccessDenied.* \(user={GUEST}, "):
        store.create_table(name, [Family("f")], [b"m"])
    with store_of(kerberized.kerberos) as store:
        store.create_table(name, [Family("f")], [b"m"])
        assert [region.start for region in store.regions(name)] == [b"", b"m"]
        store.drop_table(name)


def test_who_is_somebody_else_is_told_so(kerberized: Kerberized, services: Services) -> None:
    kerberos, realm_of = kerberized.kerberos, kerberized.kerberos.principal.partition("@")[2]
    for wrong, words in (
        (replace(kerberos, service="hbase"), "refused Kerberos: GSS initiate failed; it was asked for as hbase/"),
        (replace(kerberos, service="other"), "with other/localhost .*not found in Kerberos database"),
        (replace(kerberos, principal=f"nobody@{realm_of}"), f"as nobody@{realm_of} by .*keytab: "),
    ):
        with pytest.raises(StoreUnavailable, match=words):
            names_of(kerberized.plain, wrong)
    with pytest.raises(StoreUnavailable, match=r"asks for Kerberos: its address has kerberos\+ before http"):
        names_of(kerberized.by_http.removeprefix("kerberos+"), Kerberos())
    with pytest.raises(StoreUnavailable, match=r"with gate/localhost .*: it answered 40|it answered 401"):
        names_of(kerberized.by_http, kerberos)
    without = kerberized.plain.removeprefix("kerberos://")
    impatient = PoolSettings(unavailable_after_ms=1, request_timeout_ms=1_000)
    with (
        closing(HBaseCellStore(without, impatient)) as store,
        pytest.raises(StoreUnavailable, match="where it asks for Kerberos, its address begins with kerberos"),
    ):
        store.table_names()
    with pytest.raises(StoreUnavailable, match=r"no kerberos://"):
        names_of(f"kerberos://{services.thrift.replace('127.0.0.1', 'localhost')}", kerberos, 3_000)
