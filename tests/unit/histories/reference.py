"""Snapshot isolation by the book, in memory, with begins and commits that take their time: what a checker must accept.

Processes go through their transactions step by step, in any interleaving; each step costs a tick of the clock. A begin
and a commit are sent, take place, and are answered, in three steps.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum, auto

from histories import History, Key, Operation, OperationKind, Outcome, RealTime, RecordedTransaction

KEYS: tuple[Key, ...] = ("x", "y", "z", 1)
PROCESSES = 5


class Stage(Enum):
    IDLE = auto()
    BEGIN_SENT = auto()
    BEGUN = auto()
    RUNNING = auto()
    COMMIT_SENT = auto()
    DECIDED = auto()


@dataclass
class Process:
    name: str
    stage: Stage = Stage.IDLE
    start: int = 0
    snapshot: int = 0
    times: list[int] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    commit: int | None = None
    committed: bool = False


class Engine:
    """``lossy``: some answers to commits never come, whether or not the commit took place."""

    def __init__(self, *, lossy: bool = False, deleting: bool = True) -> None:
        self.lossy = lossy
        self.deleting = deleting
        self.clock = 0
        self.timestamp = 100
        self.versions: dict[Key, list[tuple[int, int | None]]] = {key: [] for key in KEYS}
        self.processes = [Process(f"p{number}") for number in range(PROCESSES)]
        self.recorded: list[RecordedTransaction] = []

    def run(self, choices: Iterable[tuple[int, int, int]]) -> History:
        for process, what, key in choices:
            self.clock += 1
            self._step(self.processes[process % PROCESSES], what, KEYS[key % len(KEYS)])
        for late in self.processes:  # what was decided may have been read: it is part of the history
            if late.stage is Stage.DECIDED:
                self.clock += 1
                self._answer(late, lost=False)
        return History(tuple(self.recorded))

    def final_state(self) -> dict[Key, int | None]:
        return {key: versions[-1][1] for key, versions in self.versions.items() if versions}

    def _next(self) -> int:
        self.timestamp += 1
        return self.timestamp

    def _step(self, process: Process, what: int, key: Key) -> None:
        match process.stage:
            case Stage.IDLE:
                process.times = [self.clock]
                process.stage = Stage.BEGIN_SENT
            case Stage.BEGIN_SENT:
                process.snapshot, process.start = self.timestamp, self._next()
                process.stage = Stage.BEGUN
            case Stage.BEGUN:
                process.times.append(self.clock)
                process.operations, process.stage = [], Stage.RUNNING
            case Stage.RUNNING:
                self._operate(process, what, key)
            case Stage.COMMIT_SENT:
                self._decide(process)
                process.stage = Stage.DECIDED
            case Stage.DECIDED:
                self._answer(process, lost=self.lossy and what % 3 == 0)

    def _operate(self, process: Process, what: int, key: Key) -> None:
        match what % 8:
            case 0 | 1 | 2:
                process.operations.append(Operation(OperationKind.READ, key, self._read(process, key)))
            case 3 | 4:
                writes = sum(each.kind is OperationKind.WRITE for each in process.operations)
                process.operations.append(Operation(OperationKind.WRITE, key, 1000 * process.start + writes))
            case 5 if self.deleting:
                process.operations.append(Operation(OperationKind.WRITE, key, None))
            case 6 if what % 5 == 0:
                self._record(process, Outcome.ABORTED, process.times)
            case _:
                process.times.append(self.clock)
                process.stage = Stage.COMMIT_SENT

    def _read(self, process: Process, key: Key) -> int | None:
        for operation in reversed(process.operations):
            if operation.kind is OperationKind.WRITE and operation.key == key:
                return operation.value
        visible = [value for commit, value in self.versions[key] if commit <= process.snapshot]
        return visible[-1] if visible else None

    def _decide(self, process: Process) -> None:
        writes = {each.key: each.value for each in process.operations if each.kind is OperationKind.WRITE}
        process.commit = None
        if not writes:
            process.commit = process.snapshot
        elif all(commit <= process.snapshot for key in writes for commit, _ in self.versions[key][-1:]):
            process.commit = self._next()
            for key, value in writes.items():
                self.versions[key].append((process.commit, value))

    def _answer(self, process: Process, *, lost: bool) -> None:
        if lost:
            self._record(process, Outcome.UNKNOWN, process.times)
        elif process.commit is None:
            self._record(process, Outcome.ABORTED, [*process.times, self.clock])
        else:
            self._record(process, Outcome.COMMITTED, [*process.times, self.clock], process.commit)

    def _record(self, process: Process, outcome: Outcome, times: list[int], commit: int | None = None) -> None:
        self.recorded.append(
            RecordedTransaction(
                process.name, process.start, process.snapshot, outcome, tuple(process.operations), commit, "",
                RealTime(*times),
            )
        )  # fmt: skip
        process.stage = Stage.IDLE


def random_choices(seed: int, steps: int) -> list[tuple[int, int, int]]:
    chooser = random.Random(seed)
    return [(chooser.randrange(PROCESSES), chooser.randrange(40), chooser.randrange(len(KEYS))) for _ in range(steps)]
