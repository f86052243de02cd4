from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner, Result

from benchmarks import commit_writes, gateway_sizes, key_order, one_row_puts, peer_command
from benchmarks.commands import bench
from benchmarks.compiled_code import Code
from benchmarks.our_oracle import OurOracle
from benchmarks.peer.configuration import PeerConfiguration, Program
from benchmarks.peer_cases import CASES
from benchmarks.sides import Services, Side, SideError
from devcluster.guard import Guard
from tests.unit.benchmarks.scripted import Call, Scripted


class Played:
    """Stands in for everything that the command starts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[Call] = []
        self.services: list[Services | None] = []
        monkeypatch.setattr(peer_command, "install", lambda directory, progress: Program(Path("java"), ()))
        monkeypatch.setattr(peer_command, "PeerSide", self.peer)
        monkeypatch.setattr(peer_command, "OurSide", self.ours)
        monkeypatch.setattr(peer_command, "OurOracle", self.oracle)
        monkeypatch.setattr(peer_command, "describe_machine", lambda: {"cores": 2})

    def peer(
        self,
        configuration: PeerConfiguration,
        program: Program,
        directory: Path,
        guard: Guard,
        services: Services | None,
    ) -> Side:
        del program, directory, guard
        self.services.append(services)
        return Scripted(configuration.name, self.calls, *[10] * 100)

    def oracle(self, directory: Path, guard: Guard, services: Services | None, code: Code) -> OurOracle:
        self.services.append(services)
        return OurOracle(directory, guard, services, code=code)

    def ours(self, front: str, oracle: OurOracle, guard: Guard) -> Side:
        del front, oracle, guard
        return Scripted("ours", self.calls, *[50] * 100)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    for name in ("PYTHIA_ZOOKEEPER", "PYTHIA_THRIFT"):
        monkeypatch.delenv(name, raising=False)
    return Played(monkeypatch)


def invoke(played: Played, arguments: Sequence[str]) -> Result:
    del played  # what it stands in for is in place
    return CliRunner().invoke(bench, ["peer", *arguments])


def test_the_last_line_is_one_json_object(played: Played) -> None:
    arguments = ["--case", "in-memory-1", "--case", "in-memory-64", "--rounds", "3", "--seconds", "1", "--json"]
    result = invoke(played, arguments)
    assert result.exit_code == 0, result.output
    fields = json.loads(result.stdout.splitlines()[-1])
    assert [(case["name"], case["ours"], case["peer"], case["ratio"]) for case in fields["cases"]] == [
        ("in-memory-64-columns", 50.0, 10.0, 5.0),
        ("in-memory-64-asyncio", 50.0, 10.0, 5.0),
        ("in-memory-1", 50.0, 10.0, 5.0),
    ]
    assert fields["machine"] == {"cores": 2}
    assert all(len(side["rounds"]) == 3 for case in fields["cases"] for side in case["sides"])
    assert "round 3 of 3" in result.stderr
    assert "in-memory-64" in result.stdout.splitlines()[4]


def test_given_services_go_to_the_cases_that_record_commits(played: Played) -> None:
    given = ["--zookeeper", "z:1", "--thrift", "t:2"]
    result = invoke(played, ["--case", "hbase-64", "--case", "in-memory-1", "--rounds", "1", *given])
    assert result.exit_code == 0, result.output
    hbase = Services("z:1", "t:2")
    assert played.services == [None] * 3 + [hbase] * 4


def test_one_address_alone_is_refused_before_anything_starts(played: Played) -> None:
    result = invoke(played, ["--case", "hbase-64", "--thrift", "t:2"])
    assert result.exit_code == 2
    assert "give both --zookeeper and --thrift" in result.stderr
    assert played.calls == []


@pytest.mark.parametrize(
    ("given", "told"),
    [(["z", "t:2"], "--zookeeper: "), (["z:1", "tt"], "--thrift: the address of HBase's Thrift gateway is host:port")],
)
def test_what_is_no_address_is_refused_before_anything_starts(played: Played, given: list[str], told: str) -> None:
    result = invoke(played, ["--case", "hbase-64", "--zookeeper", given[0], "--thrift", given[1]])
    assert result.exit_code == 2
    assert told in result.stderr
    assert played.calls == []


@pytest.mark.parametrize("benchmark", [commit_writes, gateway_sizes, key_order, one_row_puts])
def test_benchmarks_of_a_gateway_tell_what_is_no_address(benchmark: ModuleType) -> None:
    result = CliRunner().invoke(benchmark.main, ["--thrift", "nowhere"])
    assert result.exit_code == 2
    assert "--thrift: the address of HBase's Thrift gateway is host:port" in result.stderr


def test_a_failure_is_one_message(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(directory: Path, progress: object) -> Program:
        raise SideError("no compiler here")

    monkeypatch.setattr(peer_command, "install", refuse)
    result = invoke(played, ["--case", "in-memory-1"])
    assert result.exit_code == 1
    assert "Error: no compiler here" in result.stderr


def test_the_list_names_every_case_and_starts_nothing(played: Played) -> None:
    result = CliRunner().invoke(bench, ["peer", "--list"])
    assert result.exit_code == 0
    assert all(case.name in result.stdout for case in CASES)
    assert played.calls == []
