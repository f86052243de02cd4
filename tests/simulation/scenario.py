"""What a seed stands for: how many processes, how fast, how patient, and which kinds of faults.

Each seed takes a part of everything that could be varied and leaves the rest alone (swarm testing, Groce et al. 2012):
a fault that hides another does so only in some seeds.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import Enum

from configuration.defaults import SHADOW_CELLS
from lease import LeaseSettings
from tests.simulation.kernel import Restlessness

CLOCK_RATE_SHARE = 0.05
"""Clocks run fast or slow by so much at most: two of them stay within the lease's safety margin of an eighth."""


class Mode(Enum):
    """What is demanded: that nothing wrong happens, or also that everything comes to an end once all is healed."""

    SAFETY = "safety"
    LIVENESS = "liveness"


class FaultKind(Enum):
    """What can go wrong with the room."""

    CRASH = "crash"
    PAUSE = "pause"
    PAUSE_AT_STEP = "pause at a step"
    CRASH_AT_STEP = "crash at a step"
    PARTITION = "partition"
    BREAK_CONNECTION = "break a connection"
    STORE_UNSURE = "the store's answers are lost"
    STORE_DOWN = "the store is down"
    COORDINATOR_UNSURE = "the coordinator's answers are lost"
    COORDINATOR_DOWN = "the coordinator is down"
    COORDINATOR_LOST = "the coordinator loses its data"
    CLOCK_STEP = "a wall clock is stepped"
    SESSION = "a session expires"
    STOP = "an oracle is asked to stop"
    HANDOVER = "the primary is asked to hand over"
    SLOW = "the network is slow"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything about a run that its seed decides before it starts."""

    seed: int
    mode: Mode
    oracles: int
    clients: int
    threads: int
    lease: LeaseSettings
    deadline_ms: int
    request_timeout_ms: int
    store_timeout_ms: int
    heartbeat_interval_ms: int
    transaction_life_ms: int
    heal: bool
    shadow_cells: str
    outcome_cache_entries_max: int
    conflict_map_entries_max: int
    remembered_aborts_max: int
    think_ms_max: int
    busy_ms: int
    """How long new work is begun and faults occur."""
    faults: int
    fault_kinds: tuple[FaultKind, ...]
    repeat_share: float
    """Share of the store's writes that are repeated, all the time."""
    death_share: float
    """Share of commits whose thread is never heard of again, between two of the commit's steps."""
    restlessness: Restlessness
    weights: dict[str, int]

    @property
    def name(self) -> str:
        """Names every choice of the run."""
        return f"{self.mode.value}/{self.seed}"


def scenario(seed: int, mode: Mode, *, without_faults: bool = False) -> Scenario:
    """The scenario of a seed."""
    chance = random.Random(f"scenario/{mode.value}/{seed}")
    busy_ms = chance.choice((3000, 5000, 8000))
    # With little to do nobody else's request tells a deposed primary that it is deposed.
    is_quiet = chance.random() < 0.15
    return Scenario(
        seed=seed,
        mode=mode,
        oracles=chance.choice((2, 2, 3)),
        clients=1 if is_quiet else chance.choice((2, 2, 3)),
        threads=1 if is_quiet else chance.choice((1, 2, 3, 4)),
        lease=LeaseSettings(lease_ms=300 if is_quiet else chance.choice((300, 400, 600, 1000))),
        deadline_ms=chance.choice((1500, 4000, 8000)),
        request_timeout_ms=1000 if is_quiet else chance.choice((300, 1000)),
        store_timeout_ms=chance.choice((300, 1500)),
        heartbeat_interval_ms=chance.choice((200, 10_000)),
        transaction_life_ms=chance.choice((1500, 300_000, 300_000)),
        heal=chance.random() < 0.8,
        shadow_cells=random.Random(f"shadow cells/{mode.value}/{seed}").choice(SHADOW_CELLS),
        outcome_cache_entries_max=chance.choice((1, 1000)),
        conflict_map_entries_max=chance.choice((40, 20_000, 20_000)),
        remembered_aborts_max=chance.choice((1, 100_000)),
        think_ms_max=chance.choice((5, 20, 60, 200)),
        busy_ms=busy_ms,
        faults=0 if without_faults else int(busy_ms / 1000 * chance.uniform(0.7, 4)),
        fault_kinds=_fault_kinds(chance),
        repeat_share=0.0 if without_faults else chance.choice((0.0, 0.0, 0.01)),
        death_share=0.0 if without_faults else chance.choice((0.0, 0.02, 0.3)),
        restlessness=chance.choice((Restlessness(), Restlessness(0.15, 0.002), Restlessness(0.02, 0.0))),
        weights=_weights(chance),
    )


def _fault_kinds(chance: random.Random) -> tuple[FaultKind, ...]:
    """Some kinds, and some of them more often than others; those that meet the dangerous moments first of all."""
    kinds = chance.choices(list(FaultKind), k=chance.randint(1, 4))
    dangerous = (FaultKind.PAUSE_AT_STEP, FaultKind.CRASH_AT_STEP, FaultKind.PAUSE, FaultKind.PARTITION)
    return (*kinds, *chance.choices(dangerous, (6, 2, 1, 2), k=chance.randint(2, 8)))


def _weights(chance: random.Random) -> dict[str, int]:
    """How often each kind of work is done, compared with the others; some not at all."""
    work = {
        "update": 10, "blind": 4, "scan": 4, "rerun": 2, "long": 2, "abandon": 1, "roll back": 1, "share": 1, "help": 2,
        "ask": 1, "abort": 1,
    }  # fmt: skip
    return {kind: weight for kind, weight in work.items() if kind == "update" or chance.random() < 0.75}
