"""An oracle at an installation's level: refused at the door, agreed on with the data, raised by an operator."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from click.testing import CliRunner

from commit_table.level_record import LevelOfData
from commit_table.table import CommitTable, table_name
from lease import CoordinatorUnavailable, Create, LevelRecord, LevelRefused, SetData, ZnodePaths
from lease.gate import read_level
from lease.memory import MemoryCoordinator, MemoryTree
from lease.raising import attendance, require_level
from store import Cell, MemoryCellStore, StoreUnavailable
from store.faults import FaultyCellStore
from tests.unit.lease.test_level_races import NEW, OLD, candidate
from tests.unit.tso.conftest import House, RunHouse
from tso.commands import serve as commands
from tso.commands import upgrade as upgrade_commands
from tso.commands.main import main
from tso.commands.upgrading import SEEN_SECONDS, CannotRaise, Outlook, finish, outlook
from tso.levels import LevelAgreement
from versions import LevelRange, levels

PATHS = ZnodePaths("/pythia")
ROOT = PATHS.root
THIRD = LevelRange(2, 3)


class Site:
    """ZooKeeper and HBase of one installation, both twins."""

    def __init__(self) -> None:
        self.tree = MemoryTree()
        self.store = FaultyCellStore()
        self.of_data = LevelOfData(self.store, ROOT)
        self.told: list[str] = []
        self.waited: list[float] = []

    def client(self) -> MemoryCoordinator:
        return MemoryCoordinator(self.tree)

    def member(self, name: str, spoken: LevelRange) -> MemoryCoordinator:
        client = self.client()
        candidate(client, name, spoken).join("standby")
        return client

    def agreement(self) -> LevelAgreement:
        return LevelAgreement(self.store, self.client(), ROOT, 1)

    def level(self) -> LevelRecord | None:
        stored = read_level(self.client(), PATHS, 1)
        return None if stored is None else stored.record

    def finish(self, own: LevelRange) -> int:
        return finish(self.client(), self.store, ROOT, own, tell=self.told.append, wait=self.waited.append)


@pytest.fixture
def site() -> Site:
    site = Site()
    CommitTable(site.store, table_name(ROOT)).create()
    return site


def speak(monkeypatch: pytest.MonkeyPatch, spoken: LevelRange) -> None:
    monkeypatch.setattr(levels, "SPOKEN", spoken)


def test_a_new_installation_begins_at_the_highest_level_of_its_first_process(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    speak(monkeypatch, THIRD)
    site.agreement().agree()
    assert (site.level(), site.of_data.read()) == (LevelRecord(3, 3), 3)
    speak(monkeypatch, NEW)
    with pytest.raises(LevelRefused, match="upgrade this program"):
        site.agreement().look()
    with pytest.raises(LevelRefused, match="upgrade this program"):
        site.agreement().agree()


def test_where_zookeeper_was_made_anew_the_data_say_the_level(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.of_data.raise_to(2)
    speak(monkeypatch, THIRD)
    site.agreement().agree()
    assert site.level() == LevelRecord(2, 2)


def test_where_zookeeper_was_restored_nobody_serves_until_it_is_raised_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.member("a", NEW)
    site.of_data.raise_to(2)
    speak(monkeypatch, NEW)
    with pytest.raises(LevelRefused, match="restored from an older state"):
        site.agreement().agree()
    assert site.finish(NEW) == 2
    site.agreement().agree()


def test_data_that_require_more_are_refused_by_who_is_alone_and_by_who_is_not(site: Site) -> None:
    site.of_data.raise_to(2)
    for agreement in (site.agreement(), LevelAgreement(site.store, None, ROOT, 1)):
        for act in (agreement.look, agreement.agree, agreement.first_level):
            with pytest.raises(LevelRefused, match=r"requires level 2.*upgrade this program"):
                act()


def test_an_oracle_that_is_alone_puts_its_level_on_record(site: Site) -> None:
    LevelAgreement(site.store, None, ROOT, 1).agree()
    assert site.of_data.read() == 1
    assert site.level() is None


def test_while_hbase_does_not_answer_no_level_is_made_up(site: Site) -> None:
    class Silent(MemoryCellStore):
        def get(self, *_: object, **__: object) -> dict[bytes, Cell]:
            raise StoreUnavailable("no answer")

    silent = LevelAgreement(Silent(), site.client(), ROOT, 1)
    silent.look()
    with pytest.raises(CoordinatorUnavailable, match="at which level the data are"):
        silent.first_level()
    with pytest.raises(StoreUnavailable):
        silent.agree()
    assert site.level() is None


def test_a_process_that_is_refused_ends_with_the_reason(
    run_house: RunHouse, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        speak(monkeypatch, THIRD)
        await house.start("b")
        assert await house.running["b"] == 1
        assert "it is too new" in caplog.text
        assert not any("primary" in line for line in house.lines["b"])
        speak(monkeypatch, LevelRange(1, 2))
        await house.start("c")
        operator = MemoryCoordinator(house.tree)
        await house.until(lambda: [one.holder for one in attendance(operator, ROOT).members] == ["a", "c"])

    run_house(scenario)


def test_the_level_is_raised_when_everybody_can(site: Site) -> None:
    site.member("a", NEW)
    site.of_data.raise_to(1)
    assert site.finish(NEW) == 2
    assert (site.level(), site.of_data.read()) == (LevelRecord(2, 2), 2)
    assert site.waited == [SEEN_SECONDS]
    assert "level 2 is required" in site.told[0]
    assert site.finish(NEW) == 2, "again is harmless"
    assert site.waited == [SEEN_SECONDS]


def test_who_is_in_the_way_is_named_and_nothing_changes(site: Site) -> None:
    site.member("a", NEW)
    site.member("b", OLD)
    site.of_data.raise_to(1)
    assert outlook(site.client(), site.store, ROOT, NEW).obstacles == [
        "not everybody works at level 2. Upgrade first: b (level 1)"
    ]
    with pytest.raises(CannotRaise, match=r"Upgrade first: b \(level 1\)"):
        site.finish(NEW)
    site_again = Site()
    site_again.member("a", NEW)
    with pytest.raises(CannotRaise, match=r"Upgrade first: this program \(level 1\)"):
        site_again.finish(OLD)
    assert site.level() == site_again.level() == LevelRecord(1, 1)


def test_who_comes_with_a_release_that_is_too_new_is_told_so_and_not_to_upgrade(site: Site) -> None:
    site.member("a", OLD)
    site.of_data.raise_to(1)
    [told] = outlook(site.client(), site.store, ROOT, THIRD).obstacles
    assert "too new for level 1" in told
    assert "Upgrade first" not in told
    with pytest.raises(CannotRaise, match="too new for level 1"):
        site.finish(THIRD)
    assert site.level() == LevelRecord(1, 1)


def test_a_raise_that_broke_off_is_told_and_brought_to_its_end(site: Site) -> None:
    client = site.member("a", NEW)
    assert require_level(client, ROOT, attendance(client, ROOT), 2)
    found = outlook(client, site.store, ROOT, NEW)
    assert found.is_unfinished
    assert not found.obstacles
    with pytest.raises(CannotRaise, match="level 2 is required"):
        site.finish(OLD)
    assert site.finish(NEW) == 2


def test_the_level_waits_for_a_holder_of_the_lease_that_does_not_know(site: Site) -> None:
    client = site.member("a", NEW)
    assert candidate(client, "a", NEW).attempt().renew()  # type: ignore[union-attr]
    with pytest.raises(CoordinatorUnavailable, match="a holds the lease and has not yet seen"):
        site.finish(NEW)
    assert site.level() == LevelRecord(1, 2)
    assert site.of_data.read() == 2, "who only reads cells knew before"


def test_a_level_that_zookeeper_lost_meanwhile_is_not_told_as_raised(site: Site) -> None:
    """Somebody removes the level's node in the middle, and an oracle makes it again, as the data had it until then."""
    client = site.member("a", NEW)
    site.of_data.raise_to(1)

    def lose_it(_: float) -> None:
        if len(site.told) == 2 and not site.waited:
            site.tree.remove(PATHS.level)
            client.commit([Create(PATHS.level, LevelRecord(1, 1).encode())], timeout_ms=1)
        site.waited.append(0.0)

    with pytest.raises(CoordinatorUnavailable, match="has lost that level 2 is required: call `pythia upgrade finish`"):
        finish(site.client(), site.store, ROOT, NEW, tell=site.told.append, wait=lose_it)
    assert site.finish(NEW) == 2
    assert (site.level(), site.of_data.read()) == (LevelRecord(2, 2), 2)


def test_the_level_does_not_go_beyond_what_was_agreed_to(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the operator reads the question, or is told of an obstacle, the last of the older processes goes."""
    speak(monkeypatch, NEW)
    monkeypatch.setattr("tso.commands.upgrading.SEEN_SECONDS", 0.0)
    monkeypatch.setattr(site.store, "close", lambda: None)
    monkeypatch.setattr(upgrade_commands, "HBaseCellStore", lambda _: site.store)
    monkeypatch.setattr(upgrade_commands, "writing_session", lambda *_, **__: contextlib.nullcontext(site.client()))
    site.member("a", NEW)
    site.of_data.raise_to(1)
    older = site.member("b", OLD)

    def look_while_the_older_one_goes(*arguments: Any) -> Outlook:
        found = outlook(*arguments)
        older.close()
        return found

    monkeypatch.setattr(upgrade_commands, "outlook", look_while_the_older_one_goes)
    command = ["upgrade", "finish", "--zookeeper", "h:1", "--thrift", "h:2"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 1
    assert "level 2 has become possible since you were asked: nothing was done" in result.output
    assert (site.level(), site.of_data.read()) == (LevelRecord(1, 1), 1)
    assert CliRunner().invoke(main, command, input="y\n").output.splitlines()[-1] == "level 2"


def test_the_level_on_the_command_line(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    speak(monkeypatch, NEW)
    monkeypatch.setattr("tso.commands.upgrading.SEEN_SECONDS", 0.0)
    monkeypatch.setattr(site.store, "close", lambda: None)
    monkeypatch.setattr(upgrade_commands, "HBaseCellStore", lambda _: site.store)
    monkeypatch.setattr(upgrade_commands, "ZooKeeperCoordinator", lambda _: site.client())
    monkeypatch.setattr(upgrade_commands, "writing_session", lambda *_, **__: contextlib.nullcontext(site.client()))
    site.member("a", NEW)
    where = ["--zookeeper", "h:1", "--thrift", "h:2"]

    def invoke(*arguments: str, answer: str | None = None) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["upgrade", *arguments, *where], input=answer)
        return result.exit_code, result.output

    code, output = invoke("status")
    assert code == 0
    assert "level 1\n" in output
    assert "levels 1 to 2" in output
    assert "raises it to level 2" in output
    assert json.loads(invoke("status", "--json")[1])["target"] == 2
    code, output = invoke("finish", answer="n\n")
    assert code == 1
    assert "never back" in output
    assert "nothing was done: the level stays at 1" in output
    code, output = invoke("finish", answer="")
    assert code == 1, "nobody is there, which is no interrupt"
    assert "nobody answered. Where there is no terminal, give --yes" in output
    assert site.level() == LevelRecord(1, 1)
    code, output = invoke("finish", "--yes")
    assert (code, output.splitlines()[-1]) == (0, "level 2")
    site.client().commit([SetData(PATHS.level, LevelRecord(1, 2).encode(), None)], timeout_ms=1)
    assert invoke("status")[0] == 1
    assert commands.tso.commands["protect"]
