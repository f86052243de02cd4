"""The simulation itself: many seeds are right, a seed is one story, and a broken rule is noticed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time

import pytest

import client.connection.deadline
import client.connection.line
import tso.roles
from tests.imports import ROOT
from tests.mutations.rules import RULES
from tests.simulation.breaking import broken
from tests.simulation.scenario import Mode
from tests.simulation.simulation import Run, run

SEEDS_A_TEST = 5
RUNS_TO_NOTICE_MAX = 300
"""A broken rule is noticed within so many runs; most are within a few."""

NOTICED = [
    "a begin is not bounded by the durable watermark",
    "a commit is acknowledged before it is persisted",
    "a new epoch judges snapshots from before it",
    "a repeated commit conflicts with itself",
    "a revalidation does not look at what is guarded",
    "a revalidation looks for no conflicts",
    "a standby waits half a lease",
    "a takeover leaves the epoch as it was",
    "conflicts are ignored",
    "the cell timestamp of a commit is not the epoch",
    "the ceiling is moved without asserting the lease",
    "the lease is overwritten, whatever stands there and whoever's tenure goes on",
    "what is guarded does not travel with the commit",
]
"""Rules of ``tests.mutations``, of all rooms, that the random runs notice soon. Others take the exhaustive
search, which is faster for them (``test_exhaustive``), or far more runs: a lease that is lost during a write is met in
one of a hundred.
"""


def first_failure(name: str) -> Run | None:
    mutation = next(mutation for mutation in RULES if mutation.name == name)
    with broken(mutation):
        for seed in range(RUNS_TO_NOTICE_MAX // 2):
            for mode in Mode:
                ended = run(seed, mode)
                if ended.anomalies:
                    return ended
    return None


@pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("first", range(1, 26, SEEDS_A_TEST))
def test_whatever_goes_wrong_the_promises_hold(mode: Mode, first: int) -> None:
    for seed in range(first, first + SEEDS_A_TEST):
        ended = run(seed, mode)
        assert not ended.anomalies, f"{ended.summary}\n" + "\n".join(ended.anomalies)


def test_the_runs_meet_what_they_are_for() -> None:
    runs = [run(seed, Mode.SAFETY) for seed in range(100, 112)]
    assert sum(ended.epochs for ended in runs) > 2 * len(runs)
    assert sum(ended.survived for ended in runs) > 0
    assert sum(ended.late_writes for ended in runs) > 0
    assert sum(ended.committed for ended in runs) > 20 * len(runs)


def test_without_faults_nothing_is_lost_and_one_epoch_is_enough() -> None:
    ended = run(1, Mode.LIVENESS, without_faults=True)
    assert not ended.anomalies
    assert ended.epochs == 1


def test_a_seed_is_one_story_told_or_not() -> None:
    told, again, untold = run(7, Mode.SAFETY, told=True), run(7, Mode.SAFETY, told=True), run(7, Mode.SAFETY)
    assert told.story == again.story
    assert told.summary == untold.summary
    assert not untold.story


def test_a_seed_is_the_same_story_in_every_process() -> None:
    first, second = (_command("--seed", "11", "--mode", "liveness", "--story", hash_seed=each) for each in ("1", "2"))
    assert first.returncode == 0, first.stdout
    assert first.stdout.count("\n") > 100
    assert first.stdout == second.stdout


def test_a_failure_is_told_as_a_story_and_comes_again() -> None:
    breaking = ("--break", "conflicts are ignored")
    explored = _command("--seconds", "0", "--mode", "safety", "--from-seed", "1", *breaking)
    assert explored.returncode == 1
    assert "ANOMALY: " in explored.stdout
    assert "again: python -m tests.simulation --seed 1 --mode safety --story" in explored.stdout
    again = _command("--seed", "1", "--mode", "safety", *breaking)
    anomalies = [line for line in explored.stdout.splitlines() if line.startswith("ANOMALY: ")]
    assert [line for line in again.stdout.splitlines() if line.startswith("ANOMALY: ")] == anomalies
    assert again.returncode == 1


@pytest.mark.parametrize("name", NOTICED)
def test_a_broken_rule_is_noticed(name: str) -> None:
    ended = first_failure(name)
    assert ended is not None, f"{RUNS_TO_NOTICE_MAX} runs did not notice that {name}"


def test_everything_real_is_back_in_its_place_afterwards() -> None:
    run(2, Mode.SAFETY)
    assert vars(tso.roles)["threading"] is threading
    assert vars(client.connection.line)["socket"] is socket
    assert vars(client.connection.deadline)["time"] is time


def _command(*arguments: str, hash_seed: str = "0") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
