"""From a process's second task on, what survived the collection after the first is collected no more."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from pyspark import TaskContext

from client.spark import collections_of_garbage
from client.spark.collections_of_garbage import spare_what_stays


@dataclass
class Task:
    number: int

    def taskAttemptId(self) -> int:  # noqa: N802  # as in PySpark
        return self.number


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was said to the collector, in a process that has run no task yet."""
    told: list[str] = []
    monkeypatch.setattr(collections_of_garbage, "_first_task", None)
    monkeypatch.setattr(collections_of_garbage, "_is_spared", False)
    monkeypatch.setattr("gc.freeze", lambda: told.append("freeze"))
    return told


def in_task(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(TaskContext, "get", classmethod(lambda cls: Task(number)))
    spare_what_stays()


def test_the_first_task_leaves_all_to_the_collection_after_it(
    frozen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        in_task(monkeypatch, 0)
    assert frozen == []


def test_the_second_one_spares_what_survived_that_once_and_for_all(
    frozen: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (5, 5, 6, 6, 7):
        in_task(monkeypatch, number)
    assert frozen == ["freeze"]


def test_a_driver_and_a_program_are_left_alone(frozen: list[str]) -> None:
    for _ in range(3):
        spare_what_stays()
    assert frozen == []
