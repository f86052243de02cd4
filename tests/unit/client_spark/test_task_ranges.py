"""Which rows each task of a job takes, of a read and of a vacuum."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from client import ClientSettings, InvalidRequest
from client.spark import SparkSweep, sweeping
from client.spark.sweeping import pieces_of
from client.spark.task_ranges import WHOLE_TABLE, task_ranges
from client.vacuum.parts import Orders, Part, SweptPart
from client.vacuum.report import TableReport
from client.vacuum.swept import Swept
from store import CellStore, KeyRange, TableMissing
from tests.unit.client_spark.three_regions import ThreeRegions

STORE = cast(CellStore, ThreeRegions())


def tasks_of(min_partitions: int, *wanted: KeyRange) -> list[tuple[KeyRange, ...]]:
    return task_ranges(STORE, "t", [b"d"], wanted or WHOLE_TABLE, min_partitions=min_partitions)


def test_regions_are_cut_further_only_where_they_have_rows() -> None:
    assert tasks_of(3) == [(region,) for region in ThreeRegions().regions("t")]
    assert [key_range.start[:1] for (key_range,) in tasks_of(6)] == [b"", b"M", b"d", b"m", b"m"]


def test_only_what_is_wanted_is_read_and_many_ranges_share_a_task() -> None:
    one = KeyRange(b"e", b"f")
    assert tasks_of(1, one) == [(one,)]
    assert [(task[0].start, task[-1].stop) for task in tasks_of(2, one)] == [
        (b"e", b"eM" + bytes(7)),
        (b"eM" + bytes(7), b"f"),
    ]
    many = [KeyRange(b"%c" % letter, b"%c\x00" % letter) for letter in range(ord("a"), ord("p"))]
    tasks = tasks_of(6, *many)
    assert [key_range for task in tasks for key_range in task] == many
    assert [len(task) for task in tasks] == [1, 2, 4, 5, 1, 2]


def test_of_nothing_wanted_one_task_reads_nothing() -> None:
    assert task_ranges(STORE, "t", [b"d"], [], min_partitions=4) == [()]


def test_a_vacuum_sweeps_every_region_by_itself_and_knows_what_was_left_of_the_table() -> None:
    part = Part("t", (b"d",), 3, Swept(9, frozenset({5})))
    pieces = pieces_of(STORE, part, 1)
    assert pieces == [replace(part, key_range=region) for region in ThreeRegions().regions("t")]
    assert len(pieces_of(STORE, part, 6)) == 5


def test_a_table_that_is_gone_is_left_to_the_task_that_finds_it_so() -> None:
    class Gone(ThreeRegions):
        def regions(self, table: str) -> list[KeyRange]:
            raise TableMissing("there is no table 't'")

    part = Part("t", (b"d",), 0)
    assert pieces_of(cast(CellStore, Gone()), part, 4) == [part]


def test_a_task_sweeps_its_part_and_tells_what_it_came_to(monkeypatch: pytest.MonkeyPatch) -> None:
    came_to = SweptPart(TableReport(rows=7), Swept(9, frozenset({5})), None)
    swept: list[Part] = []

    def here(manager: object, orders: Orders, parts: Sequence[Part], progress: object) -> Iterator[Any]:
        swept.extend(parts)
        yield parts[0], came_to

    monkeypatch.setattr(sweeping, "manager_for", lambda settings: None)
    monkeypatch.setattr(sweeping, "here", here)
    parts = pieces_of(STORE, Part("t", (b"d",), 0), 1)
    settings = ClientSettings(zookeeper="127.0.0.1:1", thrift="127.0.0.1:2")
    told = sweeping.swept_in_task(settings, Orders(9, 0, dry_run=False), parts, 2)
    assert SweptPart(*pickle.loads(told)) == came_to
    assert swept == [parts[2]]


@pytest.mark.parametrize("number", [0, -1, 10_001, True, "4", 1.0])
def test_a_number_of_tasks_that_cannot_be_is_refused(number: Any) -> None:
    with pytest.raises(InvalidRequest, match="from 1 to 10,000"):
        SparkSweep(cast(Any, None), min_partitions=number)
