"""Regions of HBase split while they are read and written: nobody notices."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from client import TransactionManager
from commit_table import table_name
from drills.waiting import wait_until
from histories import Driven, History, Recorder, check, drive
from histories.workloads import Bank
from tests.integration.conftest import Installation
from tests.region_splits import split_in_two

pytestmark = pytest.mark.integration

SPELL_SECONDS = 1.0
SPLIT_SECONDS_MAX = 60.0


def test_a_table_and_the_commit_table_split_under_load(installation: Installation, tmp_path: Path) -> None:
    installation.start("alone").until_primary()
    bank = Bank(f"bank_{uuid.uuid4().hex[:8]}")
    with TransactionManager.connect(installation.settings) as manager:
        bank.setup(manager)
        recorder = Recorder(manager, bank.cells, process="0")
        with ThreadPoolExecutor(1) as pool:
            splitting = pool.submit(split_both, installation, manager, bank, tmp_path)
            driven: list[Driven] = []
            while not splitting.done() or not driven:
                driven.append(drive(bank, recorder, threads=3, seconds=SPELL_SECONDS, seed=len(driven)))
            splitting.result()
        driven.append(drive(bank, recorder, threads=3, seconds=SPELL_SECONDS, seed=len(driven)))
        final_state = bank.final_state(recorder)
        recorded = History.merged([recorder.history(bank.name)])
        assert all(each.steps > 0 and each.unavailable == 0 for each in driven)
        assert check(recorded, final_state) == []
        assert bank.check(recorded) == []
        manager.drop_table(bank.table)


def split_both(installation: Installation, manager: TransactionManager, bank: Bank, directory: Path) -> None:
    first, last = str(bank.keys[0]), str(bank.keys[-1])
    for table, between in ((bank.table, (first, last)), (table_name(installation.root), None)):
        split_in_two(installation.services.zookeeper, table, directory, between)
        wait_until(partial(has_two_regions, manager, table), f"{table} to have two regions", SPLIT_SECONDS_MAX)
    assert first.encode() < manager.store.regions(bank.table)[1].start <= last.encode()


def has_two_regions(manager: TransactionManager, table: str) -> bool:
    return len(manager.store.regions(table)) == 2
