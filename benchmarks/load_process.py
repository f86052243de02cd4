"""Processes that make load: told what to do by one line, they answer with one line of JSON.

Invariant: an answer is read before the next line goes to the same process.
"""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.compiled_code import AS_INSTALLED, Code
from benchmarks.sides import Latency, SideError, Window
from devcluster.guard import Guard
from drills.children import Child, python

Answer = dict[str, Any]

POLL_SECONDS: Final = 0.1
ANSWERS_MAX: Final = 2
"""The load says one line for each that it is told."""


class LoadProcess:
    """One such process: ``python -m MODULE ARGUMENTS``."""

    def __init__(
        self, name: str, module: str, arguments: Sequence[str], log: Path, guard: Guard, code: Code = AS_INSTALLED
    ) -> None:
        self._answers: queue.Queue[str] = queue.Queue(ANSWERS_MAX)
        self.child = Child(
            name,
            python(module, *arguments),
            log,
            guard,
            take=lambda line, at_ns: self._answers.put(line),
            environment=code.environment,
        )

    def ask(self, line: str) -> None:
        """Have it begin. Raises ``ChildFailed`` when it is gone."""
        self.child.send(line)

    def answer(self, seconds_max: float) -> Answer:
        """What came of it. Raises ``SideError`` where nothing came within ``seconds_max``."""
        deadline = time.monotonic() + seconds_max
        while True:
            try:
                answer: Answer = json.loads(self._answers.get(timeout=POLL_SECONDS))
                return answer
            except queue.Empty:
                if not self.child.is_running() or time.monotonic() > deadline:
                    raise SideError(f"{self.child.name} did not answer\n{self.child.tail()}") from None

    def end(self) -> None:
        """End the process."""
        self.child.end()


def window_line(in_flight: int, cells: int, seconds: float, connections: int) -> str:
    """How a window is asked for."""
    return f"{in_flight} {cells} {seconds} {connections}"


def shares(total: int, parts: int) -> list[int]:
    """``total`` in ``parts`` that differ by one at most, the larger ones first."""
    return [total // parts + (number < total % parts) for number in range(parts)]


def window_of(answers: Sequence[Answer], oracle_cpu_seconds: float) -> Window:
    """The window that several load processes measured at once; of latencies the largest of theirs, a bound from above.

    ``answers``: at least one.
    """
    ahead = [answer["ahead_ms"] for answer in answers if answer.get("ahead_ms") is not None]
    return Window(
        transactions=sum(answer["transactions"] for answer in answers),
        aborted=sum(answer["aborted"] for answer in answers),
        seconds=max(answer["seconds"] for answer in answers),
        whole=_largest([answer["whole_us"] for answer in answers]) or Latency(0.0, 0.0),
        begin=_largest([answer["begin_us"] for answer in answers]),
        commit=_largest([answer["commit_us"] for answer in answers]),
        client_cpu_seconds=sum(answer["cpu_seconds"] for answer in answers),
        oracle_cpu_seconds=oracle_cpu_seconds,
        ahead_ms=max(ahead, default=None),
    )


def _largest(latencies: Sequence[Sequence[float] | None]) -> Latency | None:
    known = [latency for latency in latencies if latency is not None]
    return Latency(*(max(column) for column in zip(*known, strict=True))) if known else None
