"""An oracle at the gateway of another HBase cluster: refused before it writes anything, and never primary."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from commit_table.identity import ATTEMPTS_MAX, IdentityOfData
from commit_table.table import CommitTable, table_name
from lease import DataRefused, ZnodePaths
from lease.coordinator import create_root
from lease.data_record import read_data
from lease.memory import MemoryCoordinator, MemoryTree
from store import CellStore, StoreUnavailable
from store.faults import Fault, FaultyCellStore
from store.hbase import PoolSettings
from tso.commands import serve as commands
from tso.persistence.identity import DataAgreement
from tso.settings import ServeSettings

if TYPE_CHECKING:
    from tests.unit.tso.conftest import House, RunHouse

PATHS = ZnodePaths("/pythia")
NAMES = ("a" * 32, "b" * 32)


class Site:
    """One ZooKeeper, and as many HBase clusters as are asked for."""

    def __init__(self) -> None:
        self.tree = MemoryTree()
        create_root(MemoryCoordinator(self.tree), PATHS, 1)

    def data(self, name: str | None = None) -> FaultyCellStore:
        store = FaultyCellStore()
        CommitTable(store, table_name(PATHS.root)).create()
        if name is not None:
            IdentityOfData(store, PATHS.root).give(name)
        return store

    def agreement(self, store: CellStore, *, thrift: str = "unused:1") -> DataAgreement:
        return DataAgreement(ServeSettings("a", "unused:1", thrift), MemoryCoordinator(self.tree), store)

    def recorded(self) -> str | None:
        return read_data(MemoryCoordinator(self.tree), PATHS, 1)


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.mark.parametrize("other_name", [None, NAMES[1]])
def test_an_oracle_at_another_hbase_ends_and_does_not_take_over(run_house: RunHouse, other_name: str | None) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        other = FaultyCellStore() if other_name is None else Site().data(other_name)
        tables = other.table_names()
        await house.start("b", store=other)
        assert await house.running["b"] == 1
        assert other.table_names() == tables, "nothing is made in somebody else's HBase"
        assert house.lines["b"][1:] == []
        await house.stop("a")
        await house.start_primary("c")

    run_house(scenario)


def test_the_first_process_names_the_data_and_puts_that_on_record(site: Site) -> None:
    store = site.data()
    site.agreement(store).look()
    assert site.recorded() is None, "a look writes nothing"
    for _ in range(2):
        site.agreement(store).agree()
        assert site.recorded() == IdentityOfData(store, PATHS.root).read() is not None


def test_a_zookeeper_that_was_made_anew_learns_the_name_from_the_data(site: Site) -> None:
    store = site.data(NAMES[0])
    site.agreement(store).agree()
    assert site.recorded() == NAMES[0]


def test_of_two_that_come_first_with_different_data_one_is_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    late, early = site.data(NAMES[0]), site.data(NAMES[1])

    def overtaken(data: IdentityOfData, name: str) -> str:
        monkeypatch.undo()
        site.agreement(early).agree()
        return data.give(name)

    monkeypatch.setattr(IdentityOfData, "give", overtaken)
    with pytest.raises(DataRefused, match=f"has data of another installation .{NAMES[0]}"):
        site.agreement(late).agree()
    assert site.recorded() == NAMES[1]


def test_an_empty_hbase_under_a_zookeeper_that_knows_better_is_refused_with_what_to_do(site: Site) -> None:
    site.agreement(site.data()).agree()
    empty = site.agreement(FaultyCellStore())
    for act in (empty.look, empty.agree):
        with pytest.raises(DataRefused, match=r"has no data of it.*remove the znode /pythia/data"):
            act()


def test_a_warm_standby_does_not_take_over_data_that_were_lost_since(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        standby = await house.start("b")
        await house.until(lambda: standby.server.own.warm)
        house.store.drop_table(table_name(PATHS.root))
        CommitTable(house.store, table_name(PATHS.root)).create()
        await house.stop("a")
        await house.until(lambda: house.running["b"].done() or bool(house.lines["b"][1:]))
        assert house.lines["b"][1:] == []
        assert await house.running["b"] == 1

    run_house(scenario)


def test_who_is_alone_takes_the_data_that_are_there(site: Site) -> None:
    store = site.data()
    agreement = DataAgreement(ServeSettings("a", "", "unused:1"), None, store)
    agreement.look()
    agreement.agree()
    assert IdentityOfData(store, PATHS.root).read() is None


def test_each_gateway_is_looked_through_when_an_oracle_starts(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ours, theirs, dead = site.data(NAMES[0]), site.data(NAMES[1]), site.data(NAMES[1])
    site.agreement(ours).agree()
    dead.plan("get_many", Fault.LOST)
    stores = {"ours:1": ours, "theirs:1": theirs, "dead:1": dead}
    monkeypatch.setattr(commands, "HBaseCellStore", lambda address, pool: stores[address])
    settings = ServeSettings("a", "unused:1", "dead:1,ours:1")
    with contextlib.closing(MemoryCoordinator(site.tree)) as coordinator:
        commands._look_at_data(settings, coordinator, PoolSettings())  # type: ignore[arg-type]
        assert [record.getMessage().split(" leads")[0] for record in caplog.records] == [
            "whether the gateway at dead:1"
        ]
        settings = ServeSettings("a", "unused:1", "ours:1,theirs:1")
        with pytest.raises(DataRefused, match="the gateway at theirs:1 leads to an HBase"):
            commands._look_at_data(settings, coordinator, PoolSettings())  # type: ignore[arg-type]


def test_data_keep_their_first_name_whatever_answers_are_lost(site: Site) -> None:
    store = site.data()
    identity = IdentityOfData(store, PATHS.root)
    with pytest.raises(ValueError, match="32 hexadecimal"):
        identity.give("prod")
    store.plan("compare_and_set", Fault.LOST, Fault.DONE)
    assert [identity.give(name) for name in NAMES] == [NAMES[0], NAMES[0]]


def test_data_that_take_no_name_are_told(site: Site) -> None:
    store = site.data()
    store.plan("compare_and_set", *[Fault.LOST] * ATTEMPTS_MAX)
    with pytest.raises(StoreUnavailable, match="could not be given a name"):
        IdentityOfData(store, PATHS.root).give(NAMES[0])
