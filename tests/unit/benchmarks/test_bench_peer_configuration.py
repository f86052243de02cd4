from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.peer.answers import parse_answer, run_command
from benchmarks.peer.configuration import (
    DEFAULT,
    LARGE_BATCHES,
    LOW_LATENCY,
    TIMER_1_MS,
    VERSION,
    PeerConfiguration,
    Program,
    Tables,
    explained_by,
    hbase_settings,
    server_settings,
)
from benchmarks.peer.installation import PACKAGE
from benchmarks.sides import Latency, SideError
from devcluster.artifacts import committed_list

ANSWER = (
    '{"transactions": 100, "aborted": 2, "seconds": 5.0, "cpu_seconds": 3.5, "whole": {"p50_us": 20.5, "p99_us": 30},'
    ' "begin": {"p50_us": 9, "p99_us": 12}, "commit": {"p50_us": 11, "p99_us": 18}}'
)


def test_the_server_stays_on_loopback_and_at_its_defaults_whatever_the_storage() -> None:
    assert server_settings(DEFAULT, 24_758, None) == (
        "port: 24758\n"
        "batchPersistTimeoutInMs: 10\n"
        "batchSizePerCTWriter: 25\n"
        "lowLatency: false\n"
        "timestampStoreModule: !!org.apache.omid.tso.InMemoryTimestampStorageModule [ ]\n"
        "commitTableStoreModule: !!org.apache.omid.tso.InMemoryCommitTableStorageModule [ ]\n"
        "leaseModule: !!org.apache.omid.tso.LoopbackModule [ ]\n"
    )
    with_hbase = server_settings(LOW_LATENCY, 24_758, Tables("C", "T"))
    assert "lowLatency: true\n" in with_hbase
    assert "DefaultHBaseCommitTableStorageModule {tableName: C}\n" in with_hbase
    assert "DefaultHBaseTimestampStorageModule {tableName: T}\n" in with_hbase
    assert "leaseModule: !!org.apache.omid.tso.LoopbackModule {tableName: T}\n" in with_hbase


def test_an_hbase_client_is_told_host_and_port_apart() -> None:
    assert hbase_settings("127.0.0.1:2181") == {
        "hbase.zookeeper.quorum": "127.0.0.1",
        "hbase.zookeeper.property.clientPort": "2181",
    }


def test_every_process_has_bounded_memory_and_its_settings_first_on_the_class_path() -> None:
    program = Program(Path("/j/java"), (Path("/c"), Path("/l/a.jar")))
    command = program.command(64, Path("/s"), "Main", "1")
    assert command[:2] == ["/j/java", "-Xmx64m"]
    assert command[-4:] == ["-cp", "/s:/c:/l/a.jar", "Main", "1"]


@pytest.mark.parametrize(
    ("configuration", "in_flight", "begin_us", "explained"),
    [
        (DEFAULT, 1, 10_700.0, "its 10 ms batch timer"),
        (DEFAULT, 24, 11_400.0, "its 10 ms batch timer"),
        (TIMER_1_MS, 16, 1_700.0, "its 1 ms batch timer"),
        (DEFAULT, 25, 10_700.0, None),
        (TIMER_1_MS, 16, 4_300.0, None),
        (LARGE_BATCHES, 1_024, 1_100.0, None),
        (LOW_LATENCY, 1, 100.0, None),
        (DEFAULT, 1, None, None),
    ],
)
def test_a_timer_explains_a_rate_when_batches_do_not_fill_and_most_of_a_begin_is_wait(
    configuration: PeerConfiguration, in_flight: int, begin_us: float | None, explained: str | None
) -> None:
    begin = None if begin_us is None else Latency(begin_us, begin_us)
    assert explained_by(configuration, in_flight, begin) == explained


def test_a_command_and_its_answer() -> None:
    assert run_command(64, 2, 4, 5.0) == "run 64 2 4 5.000"
    window = parse_answer(ANSWER, 2.5)
    assert (window.transactions, window.aborted, window.per_second) == (100, 2, 20.0)
    assert (window.whole, window.begin, window.commit) == (Latency(20.5, 30), Latency(9, 12), Latency(11, 18))
    assert (window.client_cpu_seconds, window.oracle_cpu_seconds) == (3.5, 2.5)


def test_an_error_of_the_driver_is_told_in_its_words() -> None:
    with pytest.raises(SideError, match="failed: ConnectionException: gone"):
        parse_answer('{"error": "ConnectionException: gone"}', 0.0)


@pytest.mark.parametrize("line", ["", "WARN something", "{}", "[]", '{"transactions": null}', "17"])
def test_anything_else_is_no_answer(line: str) -> None:
    with pytest.raises(SideError, match="something else than a window"):
        parse_answer(line, 0.0)


def test_the_committed_list_holds_the_version_that_is_named_and_a_compiler() -> None:
    artifacts = committed_list(PACKAGE)
    omid = {artifact.name: artifact.version for artifact in artifacts if artifact.group == "org.apache.omid"}
    assert {"omid-tso-server", "omid-transaction-client", "omid-hbase-commit-table"} <= set(omid)
    assert set(omid.values()) == {VERSION}
    assert "ecj" in {artifact.name for artifact in artifacts}
