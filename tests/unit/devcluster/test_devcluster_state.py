from __future__ import annotations

import errno
import json
import os
import signal
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from devcluster import configuration, ports, processes
from devcluster.errors import Busy, DiskFull, InvalidSettings, PortTaken, StateDamaged, UnusableDirectory, disk_errors
from devcluster.locks import file_lock
from devcluster.processes import ProcessRecord
from devcluster.settings import ClusterSettings
from devcluster.state import read_state, write_state
from tests.unit.devcluster.conftest import STATE


def test_the_state_comes_back_as_it_was_written(tmp_path: Path) -> None:
    assert read_state(tmp_path) is None
    write_state(tmp_path, STATE)
    assert read_state(tmp_path) == STATE
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.json"]


def test_a_thrift_2_gateway_is_a_part_where_it_was_asked_for(tmp_path: Path) -> None:
    with_it = replace(STATE, thrift2_port=9091)
    assert (STATE.parts, with_it.parts) == (("hbase", "gateway"), ("hbase", "gateway", "gateway2"))
    assert [with_it.port(part) for part in with_it.parts] == [2181, 9090, 9091]
    write_state(tmp_path, STATE)
    path = tmp_path / "cluster.json"
    earlier = json.loads(path.read_text(encoding="utf-8"))
    del earlier["thrift2_port"]
    path.write_text(json.dumps(earlier), encoding="utf-8")
    assert read_state(tmp_path) == STATE


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "processes": {}}', "\x00"])
def test_rubbish_in_the_state_file_is_an_error_of_its_own(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text, encoding="utf-8")
    with pytest.raises(StateDamaged, match="cannot be read"):
        read_state(tmp_path)


def test_an_unknown_process_in_the_state_file_is_refused(tmp_path: Path) -> None:
    write_state(tmp_path, STATE)
    path = tmp_path / "cluster.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"hbase": {', '"other": {'), encoding="utf-8")
    with pytest.raises(StateDamaged):
        read_state(tmp_path)


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"zookeeper_port": 70_000}, "zookeeper_port is 70000"),
        ({"thrift_port": -1}, "thrift_port is -1"),
        ({"thrift2_port": 70_000}, "thrift2_port is 70000"),
        ({"zookeeper_port": 5, "thrift_port": 5}, "cannot share port 5"),
        ({"zookeeper_port": 4, "thrift_port": 5, "thrift2_port": 5}, "cannot share port 5"),
        ({"hbase_heap_mebibytes": 1}, "hbase_heap_mebibytes is 1; choose between 256"),
        ({"ready_timeout_seconds": 0}, "ready_timeout_seconds is 0"),
        ({"ready_timeout_seconds": float("nan")}, "ready_timeout_seconds is nan"),
    ],
)
def test_settings_that_cannot_work_are_refused(tmp_path: Path, fields: dict[str, int], match: str) -> None:
    with pytest.raises(InvalidSettings, match=match):
        ClusterSettings(tmp_path, **fields)


def test_a_directory_that_would_split_the_class_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="without colons"):
        ClusterSettings(tmp_path / "a:b")


def test_a_given_port_that_is_taken_is_told_with_its_option() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {port} for Thrift is taken; give another with --thrift-port"):
            ports.claim(port, "Thrift", "--thrift-port")


def test_a_chosen_port_is_free_and_another_than_the_avoided(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = iter([21_000, 21_001, 21_002])
    monkeypatch.setattr("random.randrange", lambda start, stop: next(chosen))
    monkeypatch.setattr(ports, "is_free", lambda port: port == 21_002)
    assert ports.claim(0, "Thrift", "--thrift-port", avoid=(21_000,)) == 21_002


def test_the_choice_of_a_port_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda port: False)
    with pytest.raises(PortTaken, match="no free port for Thrift"):
        ports.claim(0, "Thrift", "--thrift-port")


def test_the_lock_is_one_at_a_time_and_survives_a_wipe(tmp_path: Path) -> None:
    path = tmp_path / "cluster" / "lock"
    with file_lock(path, 1.0):
        with pytest.raises(Busy, match="another process has held"), file_lock(path, 0.0):
            pytest.fail("two at once")
        path.unlink()
        with file_lock(path, 1.0):
            assert path.exists()


def test_disk_errors_are_told_apart() -> None:
    with pytest.raises(DiskFull, match="the disk that holds here is full"), disk_errors("here"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(UnusableDirectory, match="cannot work in here: Permission denied"), disk_errors("here"):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))


def test_every_address_in_the_settings_is_loopback() -> None:
    settings = configuration.hbase_settings(Path("/data/a b"), 2181)
    addresses = [value for name, value in settings.items() if "address" in name.lower() or "quorum" in name]
    assert addresses
    assert set(addresses) == {"127.0.0.1"}
    assert settings["hbase.rootdir"] == "file:///data/a b/data/hbase"


def test_commands_carry_the_mark_and_the_limits() -> None:
    directory = Path("/data")
    command = configuration.start_command("gateway", Path("/bin/java"), directory, 512, 9090)
    assert command[:2] == ["/bin/java", "-Xmx512m"]
    assert configuration.mark(directory) in command
    assert command[-7:] == ["start", "-p", "9090", "-b", "127.0.0.1", "--infoport", "-1"]
    second = configuration.start_command("gateway2", Path("/bin/java"), directory, 512, 9091)
    assert (command[-8], second[-8]) == tuple(
        f"org.apache.hadoop.hbase.{each}.ThriftServer" for each in ("thrift", "thrift2")
    )
    assert configuration.stop_command(Path("/bin/java"), directory)[-2:] == ["stop", "--shutDownCluster"]


def sleeper(output: Path, mark: str) -> ProcessRecord:
    return processes.spawn([sys.executable, "-c", "import time; time.sleep(600)", mark], os.environ, output)


def test_a_process_is_ended_only_while_it_is_ours(tmp_path: Path) -> None:
    mark = f"-Dpythia.cluster={tmp_path}"
    record = sleeper(tmp_path / "out", mark)
    try:
        assert processes.is_alive(record, mark)
        assert processes.find_marked(mark) == (record,)
        strangers = [
            (record, "-Dpythia.cluster=/elsewhere"),
            (ProcessRecord(record.pid, record.start_ticks + 1), mark),
        ]
        for stranger, its_mark in strangers:
            assert not processes.is_alive(stranger, its_mark)
            processes.send(stranger, its_mark, signal.SIGKILL)
        assert processes.wait_gone(ProcessRecord(record.pid, record.start_ticks + 1), 0.0)
        assert processes.is_alive(record, mark)
        assert not processes.wait_gone(record, 0.0)
    finally:
        processes.send(record, mark, signal.SIGKILL)
        assert processes.wait_gone(record, 30.0)
    assert processes.find_marked(mark) == ()
    processes.send(record, mark, signal.SIGKILL)
    assert processes.wait_gone(record, 0.0)
