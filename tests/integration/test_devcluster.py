"""Real clusters of this module's own: one kept over several tests, and a second one beside it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import happybase
import pytest

import devcluster
from store import CannotPreSplit, Family
from store.hbase import HBaseCellStore

pytestmark = [pytest.mark.integration, pytest.mark.takes_minutes, pytest.mark.timeout(240)]

CONNECTIONS = 120


def port_of(address: str) -> int:
    host, _, port = address.partition(":")
    assert host == "127.0.0.1"
    return int(port)


def connect(cluster: devcluster.Cluster) -> happybase.Connection:
    return happybase.Connection("127.0.0.1", port_of(cluster.thrift), timeout=60_000)


def put(cluster: devcluster.Cluster, table: bytes, row: bytes) -> None:
    connection = connect(cluster)
    if table not in connection.tables():
        connection.create_table(table, {"f": {}})
    connection.table(table).put(row, {b"f:q": row})
    connection.close()


def rows(cluster: devcluster.Cluster, table: bytes) -> set[bytes]:
    connection = connect(cluster)
    found = {row for row, _ in connection.table(table).scan()}
    connection.close()
    return found


def tables(cluster: devcluster.Cluster) -> set[bytes]:
    connection = connect(cluster)
    found = set(connection.tables())
    connection.close()
    return found


def listening(pid: int) -> set[tuple[str, int]]:
    """Addresses (as hex, the way /proc shows them) and ports on which a process listens."""
    links = {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    found = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{name}").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in links:
                address, _, port = fields[1].partition(":")
                found.add((address, int(port, 16)))
    return found


LOOPBACK_FORMS = {"0100007F", "0000000000000000FFFF00000100007F"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    # The blank in the name is meant: a user's directory may have one.
    place = tmp_path_factory.mktemp("devcluster") / "with blank"
    yield place
    devcluster.down(place, wipe=True)


@pytest.fixture
def cluster(directory: Path) -> devcluster.Cluster:
    return devcluster.up(devcluster.ClusterSettings(directory))


def test_up_serves_and_leaves_no_table_behind(cluster: devcluster.Cluster) -> None:
    assert tables(cluster) == set()
    put(cluster, b"first", b"row")
    assert rows(cluster, b"first") == {b"row"}


def test_up_again_returns_the_same_cluster(cluster: devcluster.Cluster) -> None:
    assert devcluster.up(devcluster.ClusterSettings(cluster.directory)) == cluster
    with pytest.raises(devcluster.AlreadyRunning, match="take it down first"):
        devcluster.up(devcluster.ClusterSettings(cluster.directory, thrift_port=port_of(cluster.thrift) + 1))
    found = devcluster.status(cluster.directory)
    assert (found.condition, found.zookeeper, found.thrift) == ("running", cluster.zookeeper, cluster.thrift)
    assert cluster.thrift2 is found.thrift2 is None
    with pytest.raises(devcluster.AlreadyRunning, match="runs without one; take it down"):
        devcluster.up(devcluster.ClusterSettings(cluster.directory, thrift2_port=0))


def test_one_of_other_jars_than_those_asked_for_is_not_the_same(
    cluster: devcluster.Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("hbase-server", "hbase-thrift", "zookeeper"):
        (tmp_path / f"{name}-0.jar").touch()
    monkeypatch.setenv("PYTHIA_HBASE_JARS", str(tmp_path))
    with pytest.raises(devcluster.AlreadyRunning, match="other jars than those that PYTHIA_HBASE_JARS names; take it"):
        devcluster.up(devcluster.ClusterSettings(cluster.directory))


def test_nothing_listens_off_loopback(cluster: devcluster.Cluster) -> None:
    sockets = listening(cluster.hbase_pid) | listening(cluster.gateway_pid)
    assert {port_of(cluster.zookeeper), port_of(cluster.thrift)} <= {port for _, port in sockets}
    assert {address for address, _ in sockets} <= LOOPBACK_FORMS


def test_many_connections_are_served_at_once(cluster: devcluster.Cluster) -> None:
    put(cluster, b"first", b"row")
    connections = [connect(cluster) for _ in range(CONNECTIONS)]
    try:
        assert all(connection.table(b"first").row(b"row") for connection in connections)
    finally:
        for connection in connections:
            connection.close()
    clients = [socket.create_connection(("127.0.0.1", port_of(cluster.zookeeper)), 10) for _ in range(CONNECTIONS)]
    try:
        for client in clients:
            client.sendall(b"srvr")
            assert client.recv(4_096)
    finally:
        for client in clients:
            client.close()


@pytest.mark.parametrize("kill", [False, True])
def test_the_gateway_alone_restarts_on_its_port(cluster: devcluster.Cluster, kill: bool) -> None:
    put(cluster, b"first", b"row")
    devcluster.stop_part(cluster.directory, "gateway", kill=kill)
    partial = devcluster.status(cluster.directory)
    assert (partial.condition, partial.gateway_pid, partial.hbase_pid) == ("partial", None, cluster.hbase_pid)
    again = devcluster.start_part(cluster.directory, "gateway")
    assert (again.thrift, again.zookeeper, again.hbase_pid) == (cluster.thrift, cluster.zookeeper, cluster.hbase_pid)
    assert again.gateway_pid != cluster.gateway_pid
    assert b"row" in rows(again, b"first")


def test_kept_data_is_there_again_and_a_second_cluster_runs_beside(cluster: devcluster.Cluster, tmp_path: Path) -> None:
    put(cluster, b"first", b"kept")
    stopped = devcluster.down(cluster.directory, wipe=False)
    assert (stopped.was_running, stopped.wiped) == (True, False)
    assert not Path(f"/proc/{cluster.hbase_pid}").exists()
    assert devcluster.status(cluster.directory).condition == "stopped"
    again = devcluster.up(devcluster.ClusterSettings(cluster.directory))
    assert b"kept" in rows(again, b"first")

    beside = devcluster.up(devcluster.ClusterSettings(tmp_path / "beside", thrift2_port=0))
    try:
        assert not {beside.zookeeper, beside.thrift} & {again.zookeeper, again.thrift}
        put(beside, b"second", b"row")
        assert (tables(beside), tables(again)) == ({b"second"}, {b"first"})
        makes_regions(beside, other=again)
    finally:
        stopped = devcluster.down(tmp_path / "beside", wipe=True)
    assert stopped.wiped
    assert not (tmp_path / "beside").exists()
    assert b"kept" in rows(again, b"first")


def makes_regions(cluster: devcluster.Cluster, *, other: devcluster.Cluster) -> None:
    """By its Thrift 2 gateway, for itself alone, and as long as that is there."""
    assert cluster.thrift2 is not None
    assert devcluster.up(devcluster.ClusterSettings(cluster.directory, thrift2_port=0)) == cluster
    with pytest.raises(
        devcluster.AlreadyRunning, match=f"runs with one on port {port_of(cluster.thrift2)}; take it down"
    ):
        devcluster.up(devcluster.ClusterSettings(cluster.directory, thrift2_port=port_of(cluster.thrift2) + 1))
    elsewhere = pytest.raises(CannotPreSplit, match="leads to another HBase")
    with closing(HBaseCellStore(other.thrift, thrift2=cluster.thrift2)) as store, elsewhere:
        store.create_table("parted", [Family("f")], [b"m"])
    devcluster.stop_part(cluster.directory, "gateway2", kill=True)
    found = devcluster.status(cluster.directory)
    assert (found.condition, found.thrift2) == ("partial", cluster.thrift2)
    assert ["the Thrift 2 gateway" in why for why in found.gone] == [True]
    assert devcluster.start_part(cluster.directory, "gateway2").thrift2 == cluster.thrift2
    with closing(HBaseCellStore(cluster.thrift, thrift2=cluster.thrift2)) as store:
        store.create_table("parted", [Family("f")], [b"m"])
        assert len(store.regions("parted")) == 2


def test_what_a_kill_left_is_cleared_and_the_data_is_there(cluster: devcluster.Cluster) -> None:
    put(cluster, b"first", b"before the kill")
    devcluster.stop_part(cluster.directory, "hbase", kill=True)
    devcluster.stop_part(cluster.directory, "gateway")
    with pytest.raises(devcluster.NotRunning, match="bring the whole cluster up"):
        devcluster.start_part(cluster.directory, "gateway")
    with pytest.raises(devcluster.NotRunning, match="bring the whole cluster up"):
        devcluster.start_part(cluster.directory, "hbase")
    assert devcluster.status(cluster.directory).condition == "stopped"
    again = devcluster.up(devcluster.ClusterSettings(cluster.directory))
    assert b"before the kill" in rows(again, b"first")


def test_a_process_that_nobody_recorded_is_cleared(cluster: devcluster.Cluster) -> None:
    devcluster.stop_part(cluster.directory, "hbase")
    (cluster.directory / "cluster.json").unlink()
    assert devcluster.status(cluster.directory).condition == "partial"
    stopped = devcluster.down(cluster.directory, wipe=False)
    assert stopped.was_running
    assert not Path(f"/proc/{cluster.gateway_pid}").exists()
    assert devcluster.status(cluster.directory).condition == "stopped"
