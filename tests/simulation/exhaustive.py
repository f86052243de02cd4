"""Every order of steps of a small scope, over the project's own code: ``python -m tests.simulation.exhaustive``.

Two writers of one cell, or a writer and one who guards that cell, or a writer and a reader who has to fence it, or one
and somebody who has it aborted, while the primary is deposed at any moment. Runs are repeated from the
start with other choices (stateless search); a run that comes to where another one has been, by the contents of the
store, the oracles' memory and all that each thread has seen, is not followed further.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import click

from client import CommitStep, TransactionHooks, TransactionManager
from client.connection.oracle import OracleClient
from client.transactions.heartbeat import Heartbeats
from tests.simulation.journal import Journal
from tests.simulation.kernel import VirtualThread
from tests.simulation.links import Links
from tests.simulation.modules import stand_ins
from tests.simulation.network import Network
from tests.simulation.processes import Clock, Process
from tests.simulation.recorded import TABLES, RecordedTransaction
from tests.simulation.small_scope import EPOCHS, Installation, NoHeartbeats, SteppedOracleClient, frozen
from tests.simulation.stepping import Abandoned, SteppedKernel
from tests.simulation.story import Story
from tests.simulation.truth import Truth
from tests.simulation.verdict import judged_by_clients

IN_PLACE_OF = {OracleClient: SteppedOracleClient, Heartbeats: NoHeartbeats}
DYING = "dying writer"
PLACE = (TABLES[0], b"r0", b"f:a")
OTHER_PLACE = (TABLES[0], b"r1", b"f:a")


@dataclass(slots=True)
class Exploration:
    """What came of a scope."""

    scope: str
    runs: int = 0
    states: int = 0
    ends: int = 0
    """Runs that were followed to their end."""
    survivors: int = 0
    """Runs in which a transaction committed in the epoch after its own."""
    anomalies: list[str] = field(default_factory=list)
    story: list[str] = field(default_factory=list)


Actor = Callable[[Journal, TransactionManager, str], None]


class Death(TransactionHooks):
    """A writer is never heard of again once its commit is sent."""

    def __init__(self, kernel: SteppedKernel) -> None:
        self._kernel = kernel

    def commit_step(self, step: CommitStep, start_timestamp: int) -> None:
        if step is CommitStep.SENT:
            self._kernel.park()


def _write(journal: Journal, manager: TransactionManager, who: str) -> None:
    transaction = RecordedTransaction.begin(journal, manager, who)
    transaction.put(PLACE)
    transaction.commit()


def _read(journal: Journal, manager: TransactionManager, who: str) -> None:
    transaction = RecordedTransaction.begin(journal, manager, who, read_only=True)
    transaction.get(PLACE)
    transaction.commit()


def _guard(journal: Journal, manager: TransactionManager, who: str) -> None:
    """Guard the cell that others write, and write another one."""
    transaction = RecordedTransaction.begin(journal, manager, who)
    transaction.guard(PLACE)
    transaction.put(OTHER_PLACE)
    transaction.commit()


def _abort_another(journal: Journal, manager: TransactionManager, who: str) -> None:
    """Have the transaction aborted that has begun."""
    (start,) = journal.known_starts()
    journal.answered(who, start, manager.abort(start))


def _read_twice(journal: Journal, manager: TransactionManager, who: str) -> None:
    _read(journal, manager, who)
    _read(journal, manager, who)


DYING_WRITER = "a writer that dies with its commit under way, and a reader who looks twice"
OLD_WRITER = "a writer and a reader of its cell"
DYING_RIVAL = "a writer of the same cell as one that dies with its commit under way"
TWO_WRITERS = "two writers of one cell"
GUARDED_WRITER = "a writer of a cell that another transaction guards"
ABORTED_WRITER = "a writer whom another process aborts"

SCOPES: dict[str, Sequence[tuple[str, Actor]]] = {
    DYING_WRITER: ((DYING, _write), ("reader", _read_twice)),
    OLD_WRITER: (("writer", _write), ("reader", _read)),
    DYING_RIVAL: ((DYING, _write), ("rival", _write)),
    ABORTED_WRITER: (("writer", _write), ("aborter", _abort_another)),
    TWO_WRITERS: (("one", _write), ("other", _write)),
    GUARDED_WRITER: (("writer", _write), ("guard", _guard)),
}
MINUTES = (ABORTED_WRITER, TWO_WRITERS, GUARDED_WRITER)
"""Scopes that take minutes: explored when they are asked for."""


class _Run:
    """One run of a scope, along given choices first and then along the first one of each."""

    def __init__(
        self, actors: Sequence[tuple[str, Actor]], given: Sequence[int], visited: set[int], *, told: bool
    ) -> None:
        self.others: list[list[int]] = []
        """The choices that could have been made instead: where further runs begin."""
        self.found: list[str] = []
        self.kernel = SteppedKernel(Story(is_told=told), self._choose)
        self.truth: Truth | None = None
        """``None``: it was abandoned."""
        self._given = given
        self._visited = visited
        self.taken: list[int] = []
        with stand_ins(self.kernel, Network(self.kernel, Links(self.kernel)), IN_PLACE_OF):
            self._journal = Journal(self.kernel)
            self._installation = Installation(self.kernel, self._acknowledged)
            self._installation.manager().create_table(TABLES[0], ["f"])
            for place, (name, act) in enumerate(actors):
                self._start(name, act, after=place if act is _abort_another or _are_alike(actors) else 0)
            self._spawn("failover", self._fail_over)
            try:
                self.kernel.run_all()
                self._judge()
            except Abandoned:
                pass
            finally:
                self.kernel.close()

    def _start(self, name: str, act: Actor, *, after: int) -> None:
        """Start an actor, once ``after`` transactions have begun: of two that do the same the order of their begins
        makes no difference, and one is tried.
        """
        installation = self._installation
        manager = installation.manager(Death(self.kernel) if name == DYING else None)
        manager.catalog.entry(TABLES[0])

        def body() -> None:
            installation.waiting.wait_for(lambda: installation.begun >= after, None)
            act(self._journal, manager, name)

        self._spawn(name, body)

    def _spawn(self, name: str, body: Callable[[], None]) -> None:
        self.kernel.spawn(Process(name, 1, Clock(lambda: 0)), name, body)

    def _fail_over(self) -> None:
        self.kernel.step("failover", self._installation.fail_over)

    def _acknowledged(self) -> list[int]:
        return [record.start for record in self._journal.records if record.ended is not None]

    def _judge(self) -> None:
        self.truth = Truth(self._installation.cells, self._installation.table, self._journal.records)
        self.found = [*self.kernel.defects, *judged_by_clients(self._journal, self.truth)]

    def _choose(self, able: Sequence[VirtualThread]) -> int:
        place = len(self.taken)
        if place < len(self._given):
            choice = self._given[place]
        else:
            self._meet()
            choice = 0
            self.others += [[*self.taken, other] for other in range(1, len(able))]
        self.taken.append(choice)
        return choice

    def _meet(self) -> None:
        installation = self._installation
        memories = [frozen(vars(primary.oracle)) for primary in installation.primaries]
        state = hash((installation.epoch, frozen(vars(installation.cells)), *memories, self.kernel.standing()))
        if state in self._visited:
            raise Abandoned
        self._visited.add(state)


def _are_alike(actors: Sequence[tuple[str, Actor]]) -> bool:
    """Whether all of them do the same."""
    return len({(act, name == DYING) for name, act in actors}) == 1


def explore(scope: str, *, runs_max: int | None = None) -> Exploration:
    """Try every order of steps of a scope, until one of them is wrong."""
    actors = SCOPES[scope]
    exploration = Exploration(scope)
    visited: set[int] = set()
    begun: list[list[int]] = [[]]
    while begun and not exploration.anomalies and exploration.runs != runs_max:
        given = begun.pop()
        run = _Run(actors, given, visited, told=False)
        begun += run.others
        exploration.runs += 1
        if run.truth is not None:
            exploration.ends += 1
            exploration.survivors += any(start < EPOCHS[1] <= at for start, at in run.truth.committed.items())
        if run.found:
            exploration.anomalies = run.found
            exploration.story = _Run(actors, run.taken, set(), told=True).kernel.story.lines
    exploration.states = len(visited)
    return exploration


@click.command()
@click.option(
    "--scope", type=click.Choice(sorted(SCOPES)), multiple=True, help="These scopes; by default the quick ones."
)
def main(scope: tuple[str, ...]) -> None:
    """Try every order of steps of the small scopes."""
    failed = False
    for name in scope or [each for each in SCOPES if each not in MINUTES]:
        started = time.monotonic()
        found = explore(name)
        click.echo(
            f"{name}: {found.states:,} states, {found.runs:,} runs, {found.ends:,} of them to their end, in "
            f"{found.survivors:,} a transaction outlived its epoch, {time.monotonic() - started:.0f} s"
        )
        for line in (*found.story, *found.anomalies):
            click.echo(line)
        failed = failed or bool(found.anomalies)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
