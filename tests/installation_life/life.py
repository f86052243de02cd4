"""One life of an installation: random steps, each done to the real thing and to the model, which have to agree.

Everything that the library can do meets everything else: transactions that are shared, undone in part, guarded, killed
in the middle; bulk writes, claims, fences; tables dropped, made anew, adopted, restored; named snapshots and moments of
the past; vacuums that are killed; failovers. Any of several processes does any of it, a REST server among them, also
while another one is in the middle of something.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

from tests.installation_life.operating import FORGOTTEN_SECONDS, Operating
from tests.installation_life.reading import Reading
from tests.installation_life.surroundings import Surroundings
from tests.installation_life.transacting import Transacting
from tests.installation_life.world import AMID_OTHERS, LEVELS, World, same

AMID_CALLS = 30
"""A commit makes about as many calls to the store, or fewer."""
Step = Callable[[], None]


class Life:
    """One installation, and all that somebody does with it."""

    def __init__(self, around: Surroundings, draw: random.Random, tell: Callable[[str], None]) -> None:
        self._world = world = World(around, draw, tell)
        self._transacting, self._reading, self._operating = Transacting(world), Reading(world), Operating(world)
        self._steps = self._weighted()
        for _ in LEVELS:
            self._operating.make_table()

    def step(self) -> None:
        """Something happens."""
        (step,) = self._world.draw.choices(list(self._steps), list(self._steps.values()))
        step()

    def end(self) -> None:
        """Everybody leaves, everything is vacuumed, and nothing is left but what is seen."""
        self._reading.check()
        while self._world.open:
            self._transacting.commit()
        self._world.held.clear()
        self._transacting.late.clear()
        self._operating.deliver_late()
        for named in self._world.around.managers[0].snapshots():  # of some the creation failed, and arrived late
            self._world.around.manager().drop_snapshot(named.name)
        self._world.names.clear()
        self._world.around.pass_seconds(FORGOTTEN_SECONDS)
        self._world.around.managers[0].finish_bulk_writes()
        for _ in range(2):
            self._world.around.pass_life()
            self._operating.run_vacuum(everything=True)
        self._reading.check()
        self._operating.require_nothing_left()
        wrong = list(self._world.model.anomalies())
        same("transactions that overlap and both committed", wrong, [])

    def counted(self) -> Counter[str]:
        """How much of what there was."""
        return self._world.counted

    def happens_amid(self) -> None:
        """Something happens in the middle of something else, of another process."""
        transacting, reading, operating = self._transacting, self._reading, self._operating
        ending = [transacting.commit] * 6 + [transacting.roll_back, operating.finish_bulk_writes]
        outer = [*ending, operating.vacuum, operating.vacuum, operating.fence]
        outer += [reading.check_one, reading.check_one, reading.name_snapshot, reading.move_name, operating.back_up]
        outer += [transacting.look, transacting.look, transacting.claim, transacting.write_in_bulk]
        inner = [*ending, transacting.die_amid_commit, transacting.leave, reading.check_one]
        inner += [operating.vacuum, operating.fail_over, operating.fence, operating.start_anew]
        doing, meanwhile = self._world.draw.choice(outer), self._world.draw.choice(inner)
        if doing in ending and self._world.draw.random() < 0.1:
            meanwhile = operating.drop_table
        self._world.tell(f"{doing.__name__}, amid it {meanwhile.__name__}:")

        def happens() -> None:
            self._world.tell("  meanwhile")
            self._world.counted[AMID_OTHERS] += 1
            meanwhile()
            self._world.tell("  and it goes on")

        self._world.around.busy = self._world.draw.choice(self._world.around.managers)
        with self._world.around.amid(AMID_CALLS, happens):
            doing()
        self._world.around.busy = None

    def fails(self) -> None:
        """The store does not answer somebody."""
        transacting, reading, operating = self._transacting, self._reading, self._operating
        steps = [transacting.commit] * 6 + [transacting.roll_back, transacting.write_in_bulk, transacting.claim]
        steps += [reading.check_one, reading.name_snapshot, reading.move_name]
        steps += [operating.vacuum, operating.finish_bulk_writes, operating.fence]
        step = self._world.draw.choice(steps)
        self._world.tell(f"{step.__name__}, where the store fails:")
        with self._world.around.failing(AMID_CALLS):
            step()
            self._world.counted["failures"] += self._world.around.store.has_failed

    def _weighted(self) -> dict[Step, int]:
        """Each step, and how often it is done."""
        transacting, reading, operating = self._transacting, self._reading, self._operating
        return {
            transacting.begin: 100,
            transacting.write: 420,
            transacting.look: 80,
            transacting.commit: 110,
            transacting.roll_back: 15,
            transacting.leave: 8,
            transacting.die_amid_commit: 15,
            transacting.set_savepoint: 45,
            transacting.go_back: 45,
            transacting.release: 10,
            transacting.checkpoint: 12,
            transacting.guard: 150,
            transacting.claim: 25,
            transacting.share: 15,
            transacting.write_in_bulk: 35,
            transacting.come_late: 10,
            reading.take_snapshot: 10,
            reading.let_go_of_snapshot: 4,
            reading.name_snapshot: 5,
            reading.move_name: 4,
            reading.drop_name: 4,
            operating.make_table: 3,
            operating.drop_table: 1,
            operating.fence: 3,
            operating.put_back: 3,
            operating.vacuum: 4,
            operating.kill_vacuum: 3,
            operating.finish_bulk_writes: 2,
            operating.fail_over: 7,
            operating.start_anew: 2,
            reading.ask_outcomes: 6,
            reading.check: 8,
            operating.back_up: 8,
            self.happens_amid: 35,
            self.fails: 25,
            operating.deliver_late: 5,
            operating.compact: 4,
        }
