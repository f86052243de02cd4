"""``pythia check``: each thing that can be wrong is told where it is, and what needs it is not tried."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest
from click.testing import CliRunner, Result

from client import ClientSettings, TransactionManager
from client.checkup.commands import check
from client.checkup.findings import Finding, State, is_well, of_clock
from lease import CoordinatorUnavailable
from lease.memory import MemoryCoordinator
from lease.protection import Grant, Known
from store import CannotPreSplit, Family, StoreError, StoreUnavailable
from store.faults import FaultyCellStore
from store.memory import MemoryCellStore
from tests.unit.client.conftest import SETTINGS, Installation, empty_installation, installation, made_anew_at_once

__all__ = ["empty_installation", "installation", "made_anew_at_once"]

OPEN = Grant("world", "anyone", change=True, everything=True)
OURS = Grant("sasl", "pythia@REALM", change=True, everything=True)
GATEWAYS = ["g:1", "g:2"]


class Session(MemoryCoordinator):
    """What grants ``OURS``, or what it is told to."""

    known: Known | None = None
    granted: tuple[Grant, ...] = (OURS,)

    def grants(self, path: str, *, timeout_ms: float) -> tuple[Grant, ...] | None:
        return None if self.read(path, timeout_ms=timeout_ms) is None else self.granted

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        """Another look may follow."""


@dataclass
class Services:
    """What the command finds: a session with ZooKeeper, or why there is none, and what is behind each gateway."""

    session: Session | CoordinatorUnavailable
    behind: dict[str, Any] = field(default_factory=dict)

    def zookeeper(self, settings: ClientSettings, connect_timeout_ms: int) -> Session:
        if isinstance(self.session, CoordinatorUnavailable):
            raise self.session
        return self.session

    def store(self, settings: ClientSettings) -> Any:
        return Unclosed(self.behind[settings.thrift])


class Unclosed:
    """A store that goes on after the look at a gateway."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def close(self) -> None:
        pass


@pytest.fixture
def services(empty_installation: Installation) -> Services:
    both = dict.fromkeys(GATEWAYS, empty_installation.store)
    return Services(Session(empty_installation.tree), both)


Run = Callable[..., Result]


@pytest.fixture
def run(empty_installation: Installation, services: Services, monkeypatch: pytest.MonkeyPatch) -> Run:
    def connect(settings: ClientSettings) -> TransactionManager:
        return empty_installation.manager(settings=settings)

    monkeypatch.setattr(TransactionManager, "connect", connect)
    monkeypatch.setattr("client.checkup.looking.zookeeper_of", services.zookeeper)
    monkeypatch.setattr("client.checkup.looking.store_of", services.store)
    monkeypatch.setenv("PYTHIA_ZOOKEEPER", "z:1")
    monkeypatch.setenv("PYTHIA_THRIFT", ",".join(GATEWAYS))
    return lambda *arguments: CliRunner().invoke(check, ["--timeout-ms", "2000", *arguments])


def states(result: Result) -> dict[str, str]:
    return {each["subject"]: each["state"] for each in json.loads(result.stdout)["findings"]}


def words(result: Result) -> dict[str, str]:
    return {each["subject"]: each["words"] for each in json.loads(result.stdout)["findings"]}


ALL_FINE: Mapping[str, str] = dict.fromkeys(
    ("ZooKeeper", "znodes", "primary", "gateway g:1", "gateway g:2", "Pythia's own tables", "oracle", "clock"), "fine"
)


def test_where_nothing_is_wrong_nothing_is_said_to_be_and_nothing_is_changed(
    run: Run, installation: Installation
) -> None:
    before = installation.store.table_names()
    ended = run("t", "--json")
    assert ended.exit_code == 0, ended.output
    assert states(ended) == {**ALL_FINE, "table t": "fine"}
    assert json.loads(ended.stdout)["well"] is True
    assert "pythia_manifest" in words(ended)["Pythia's own tables"]
    assert installation.store.table_names() == before
    lines = run("t").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["fine"] * 9
    with closing(installation.manager()) as manager:
        manager.create_own_tables()
    assert words(run("--json"))["Pythia's own tables"].startswith("all 7 are there")


def test_a_thrift_2_gateway_is_looked_at_where_one_is_named(
    run: Run, installation: Installation, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not [subject for subject in states(run("--json")) if "Thrift 2" in subject]
    asked: list[str] = []

    class Real(Unclosed):
        """The twin makes such tables by itself, and has no such call."""

        def __init__(self, settings: ClientSettings) -> None:
            super().__init__(services.behind[settings.thrift.partition(",")[0]])
            self._thrift2 = settings.thrift2

        def require_thrift2(self) -> None:
            asked.append(self._thrift2)
            if self._thrift2 == "h:3":
                raise CannotPreSplit("it is one of Thrift 1")

    monkeypatch.setattr("client.checkup.looking.store_of", Real)
    there = run("--thrift2", "h:1,h:2", "--json")
    assert states(there) == {**ALL_FINE, "Thrift 2 gateway h:1": "fine", "Thrift 2 gateway h:2": "fine"}
    ended = run("--thrift2", "h:3", "--json")
    assert ended.exit_code == 1
    assert states(ended) == {**ALL_FINE, "Thrift 2 gateway h:3": "failed"}
    assert words(ended)["Thrift 2 gateway h:3"] == "it is one of Thrift 1"
    assert asked == ["h:1", "h:2", "h:3"]


def test_znodes_that_anybody_may_change_are_a_warning(run: Run, installation: Installation, services: Services) -> None:
    assert isinstance(services.session, Session)
    services.session.granted = (OPEN,)
    services.session.known = Known("etl@REALM by Kerberos", "")
    ended = run("--json")
    assert ended.exit_code == 0
    assert states(ended) == {**ALL_FINE, "znodes": "warning"}
    assert words(ended)["ZooKeeper"] == "z:1, as etl@REALM by Kerberos"


def test_without_zookeeper_there_is_no_primary_to_be_asked(
    run: Run, installation: Installation, services: Services
) -> None:
    services.session = CoordinatorUnavailable("it hung up")
    ended = run("--json")
    assert ended.exit_code == 1
    assert states(ended) == {
        **ALL_FINE,
        "ZooKeeper": "failed",
        **dict.fromkeys(("znodes", "primary", "oracle", "clock"), "not tried"),
    }
    assert words(ended)["ZooKeeper"] == "it hung up"


def test_where_no_oracle_was_ever_started_it_is_said(run: Run) -> None:
    ended = run("--json")
    assert ended.exit_code == 1
    told = words(ended)
    assert told["znodes"] == "there is no /pythia: no oracle was ever started there; look at root"
    assert told["primary"].startswith("no oracle is primary now")
    assert states(ended)["oracle"] == "not tried"


def test_an_oracle_that_is_alone_is_asked_where_it_is(run: Run, installation: Installation) -> None:
    ended = run("--oracle", "o:1", "--json")
    assert states(ended) == {name: "fine" for name in ALL_FINE if name not in ("ZooKeeper", "znodes", "primary")}


def test_a_gateway_that_does_not_serve_is_told_by_its_address(
    run: Run, installation: Installation, services: Services
) -> None:
    class Away(MemoryCellStore):
        def table_names(self) -> list[str]:
            raise StoreUnavailable("connection refused")

    services.behind["g:1"] = Away()
    ended = run("t", "--json")
    assert ended.exit_code == 1
    assert states(ended) == {**ALL_FINE, "gateway g:1": "failed", "table t": "fine"}
    services.behind["g:2"] = Away()
    ended = run("t", "--json")
    assert "Pythia's own tables" not in states(ended)
    assert states(ended)["table t"] == "not tried"


def test_a_gateway_of_another_cluster_is_told(run: Run, installation: Installation, services: Services) -> None:
    services.behind["g:2"] = MemoryCellStore()
    ended = run("--json")
    assert states(ended) == {**ALL_FINE, "gateway g:2": "failed"}
    assert (
        "leads to an HBase that has no data of it, and the oracles of /pythia write to" in words(ended)["gateway g:2"]
    )


def test_tables_that_are_none_of_ours_or_nobodys_are_told(
    run: Run, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation.store.create_table("plain", [Family("f")])
    ended = run("t", "plain", "none", "--json")
    assert ended.exit_code == 1
    assert {name: state for name, state in states(ended).items() if name.startswith("table")} == {
        "table t": "fine",
        "table plain": "failed",
        "table none": "failed",
    }
    assert not installation.manager().catalog.has_entry("plain"), "looking at it made it one of ours"

    get = FaultyCellStore.get

    def refuse(store: FaultyCellStore, table: str, *more: Any, **named: Any) -> Any:
        if table == "t":
            raise StoreError("AccessDenied")
        return get(store, table, *more, **named)

    monkeypatch.setattr(FaultyCellStore, "get", refuse)
    assert states(run("t", "--json"))["table t"] == "failed"


def test_what_was_not_tried_is_not_well() -> None:
    fine, warning = (Finding("a", state, "") for state in (State.FINE, State.WARNING))
    assert is_well([fine, warning])
    for state in (State.FAILED, State.NOT_TRIED):
        assert not is_well([fine, Finding("b", state, "")])


@pytest.mark.parametrize(
    ("ahead_ms", "took_ms", "state"),
    [(0, 5, State.FINE), (999, 0, State.FINE), (-1_400, 500, State.FINE), (1_600, 500, State.WARNING),
     (-1_600, 500, State.WARNING)],
)  # fmt: skip
def test_a_clock_that_is_off_by_more_than_its_question_took_is_a_warning(
    ahead_ms: float, took_ms: float, state: State
) -> None:
    found = of_clock(ahead_ms, took_ms, 1_000)
    assert found.state is state
    assert f"{abs(ahead_ms):.0f} ms {'behind' if ahead_ms < 0 else 'ahead of'} this" in found.words


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--thrift", "nowhere"], "thrift: the address of HBase's Thrift gateway is host:port"),
        (["--zookeeper", "z:1", "--oracle", "o:1"], "either zookeeper or oracle"),
        (["--config", "/nowhere.toml"], "the file /nowhere.toml: cannot be read"),
        ([f"t{number}" for number in range(101)], "100 tables at most, not 101"),
    ],
)
def test_what_cannot_be_meant_is_told_before_anybody_is_asked(run: Run, arguments: list[str], told: str) -> None:
    ended = run(*arguments)
    assert ended.exit_code in (1, 2)
    assert told in ended.output


def test_settings_come_from_a_file_as_a_programs_do(run: Run, installation: Installation, tmp_path: Any) -> None:
    file = tmp_path / "pythia.toml"
    file.write_text(f'[client]\nroot = "{SETTINGS.root}"\ntoken_file = "/no/token"\n')
    ended = run("--config", str(file), "--json")
    assert "token_file /no/token" in words(ended)["oracle"]
