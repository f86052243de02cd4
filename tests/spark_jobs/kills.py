"""SIGKILL in the middle of a job: to Spark's Python workers, the driver, the primary oracle, the Thrift gateway.

The moment is a random one within a phase of the job, whose usual length the jobs before it have shown. Whatever is
killed is started again, and then readers say what is left: all of the job or nothing of it, as the job was told.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from pyspark.sql import SparkSession

from client import ClientSettings, TransactionManager
from commit_table import Committed
from drills.installation import Installation
from tests.spark_jobs.driver import BEFORE, MOMENTS, SENT, SHADOW
from tests.spark_jobs.gateway import Gateway
from tests.spark_jobs.jobs import ALONE, COMMIT, FIRST, SECOND, Ended, Phases, alone, make_tables, together
from tests.spark_jobs.pairs import Ending, Pair, Result, violations
from tests.spark_jobs.processes import kill_python_workers
from tests.spark_jobs.watching import Watcher, read_pair

DRIVER_SECONDS_MAX: Final = 180.0
STRIKE_SECONDS_MAX: Final = 240.0
PRIMARY_SECONDS_MAX: Final = 60.0
DEATH_AFTER_MS_MAX: Final = 40

AFTER: Final = "after its end"
WORKER, DRIVER, PRIMARY, GATEWAY = "Python workers", "driver", "primary oracle", "Thrift gateway"
KINDS: Final = (WORKER, DRIVER, PRIMARY, GATEWAY)

_PHASES: Final = {
    WORKER: (FIRST, SECOND, ALONE),
    PRIMARY: (FIRST, SECOND, COMMIT, ALONE),
    GATEWAY: (FIRST, SECOND, COMMIT, ALONE),
}


@dataclass
class Ground:
    """Where the jobs run, and the two tables that they replace. ``state``: what has to be in them now."""

    spark: SparkSession
    installation: Installation
    gateway: Gateway | None
    """The jobs' own, where gateways are killed; everybody else has another."""
    prefix: str
    rows: int
    choice: random.Random
    state: Pair = (None, None)
    value: int = 0
    usual: dict[str, float] = field(default_factory=dict)
    """Seconds of each phase, undisturbed."""

    @property
    def tables(self) -> tuple[str, str]:
        """The two names."""
        return f"{self.prefix}_left", f"{self.prefix}_right"

    @property
    def settings(self) -> ClientSettings:
        """Of readers, and of whatever has to go on whatever is killed."""
        return self.installation.settings


def campaign(ground: Ground, kinds: Sequence[str], times: int) -> Iterator[Ending]:
    """So many kills of each kind; each ending as it is known. Undisturbed jobs come first, and have to commit."""
    with TransactionManager.connect(ground.settings) as manager:
        make_tables(manager, ground.tables)
    for job in (together, together, alone):
        yield from _undisturbed(ground, job)
    for _ in range(times):
        for kind in kinds:
            yield _driver(ground) if kind == DRIVER else _disturbed(ground, kind)


def _undisturbed(ground: Ground, job: Callable[..., Ended]) -> Iterator[Ending]:
    phases = Phases()
    ending = _judged(ground, "nothing", "", partial(_run, ground, job, phases), both=job is together)
    ground.usual |= phases.seconds
    if ending.result is not Result.COMMITTED or ending.violations:
        yield ending


def _disturbed(ground: Ground, kind: str) -> Ending:
    phase = ground.choice.choice(_PHASES[kind])
    delay = ground.choice.random() * ground.usual.get(phase, 1.0)
    phases, job = Phases(), alone if phase == ALONE else together
    moments: list[str] = []
    striker = ThreadPoolExecutor(1, thread_name_prefix="strike")

    def run() -> Ended:
        strike = striker.submit(_strike, ground, kind, phases, phase, delay, moments)
        try:
            return _run(ground, job, phases)
        finally:  # the next one is not to begin before this one is over
            done, _ = wait([strike], STRIKE_SECONDS_MAX)
            assert done, f"{kind}: what was killed was not back within {STRIKE_SECONDS_MAX:.0f} s"
            strike.result()

    try:
        ending = _judged(ground, kind, phase, run, both=phase != ALONE)
    finally:
        striker.shutdown(wait=False)
    return replace(ending, moment=moments[0] if moments else f"never came to: {phase}")


def _strike(ground: Ground, kind: str, phases: Phases, phase: str, delay: float, moments: list[str]) -> None:
    """Kill, and have it back. ``moments`` gets the phase in which that was: a random moment may come late."""
    if not phases.until(phase):
        return
    threading.Event().wait(delay)  # random: nothing has to be found in any state
    moments.append(phases.now or AFTER)
    if kind == WORKER:
        kill_python_workers()
    elif kind == GATEWAY:
        assert ground.gateway is not None
        ground.gateway.kill()
        ground.gateway.start()
    else:
        _depose(ground.installation)


def _depose(installation: Installation) -> None:
    """Kill the primary, have a standby take over, and a new one take the place of that."""
    primary = installation.await_primary(0, PRIMARY_SECONDS_MAX)  # on a slow machine it may have lost its lease
    epoch = primary.epoch or 0
    primary.kill()
    installation.await_primary(epoch, PRIMARY_SECONDS_MAX)
    primary.start()
    primary.await_ready()


def _run(ground: Ground, job: Callable[..., Ended], phases: Phases) -> Ended:
    settings = ground.settings if ground.gateway is None else ground.gateway.through(ground.settings)
    with TransactionManager.connect(settings) as manager:
        return job(ground.spark, manager, ground.tables, ground.rows, ground.value + 1, phases)


def _judged(
    ground: Ground,
    kind: str,
    moment: str,
    run: Callable[[], Ended],
    *,
    both: bool,
    settled: Callable[[], bool | None] = lambda: None,
) -> Ending:
    """Run a job beside a reader, and hold what is left against what it was told.

    ``settled``: whether the commit table says that it committed, asked before what is left is read.
    """
    before, value = ground.state, ground.value + 1
    wanted = (value, value if both else before[1])
    with Watcher(ground.settings, ground.tables, ground.rows) as watcher:
        ended = run()
    wrong = list(watcher.torn)
    ground.value, must = value, settled()
    try:
        with TransactionManager.connect(ground.settings) as manager:
            ground.state = read_pair(manager, ground.tables, ground.rows)
    except ValueError as error:
        wrong.append(f"in the end there were {error}")
    wrong += violations(before, wanted, ground.state, watcher.seen, ended.result, must=must)
    if ended.reason == "unexplained":
        wrong.append(f"it gave no reason: {ended.detail}")
    return Ending(kind, moment, ended.result, ended.reason, ground.state == wanted, wrong, watcher.snapshots)


# --- the driver


def _driver(ground: Ground) -> Ending:
    moment = ground.choice.choice(list(MOMENTS))
    after_ms = ground.choice.randrange(DEATH_AFTER_MS_MAX) if moment == SHADOW else 0
    died: list[int] = []

    def run() -> Ended:
        output = _run_driver(ground, moment, after_ms)
        died.extend(int(line.split()[1]) for line in output.splitlines() if line.startswith("dies "))
        lives = [line for line in output.splitlines() if line.startswith("lives ")]
        return Ended(Result.DIED, "lived on: death came late" if lives else "")

    def settled() -> bool:
        with TransactionManager.connect(ground.settings) as manager:
            # A commit that was sent may be decided at any time: who looks at what it left has to end it before.
            look = manager.abort if moment == SENT else manager.outcome
            return isinstance(look(died[0]), Committed)

    ending = _judged(ground, DRIVER, moment, run, both=True, settled=settled)
    expected = {BEFORE: False, SHADOW: True}.get(moment, ending.committed)
    wrong = [] if ending.committed == expected else [f"killed at {moment!r}, and committed is {ending.committed}"]
    return replace(ending, violations=[*ending.violations, *wrong])


def _run_driver(ground: Ground, moment: str, after_ms: int) -> str:
    left, right = ground.tables
    given = [ground.settings.to_json(), left, right, ground.rows, ground.value + 1, moment, after_ms]
    command = [sys.executable, "-m", "tests.spark_jobs.driver", *map(str, given)]
    victim = subprocess.run(
        command, capture_output=True, text=True, timeout=DRIVER_SECONDS_MAX, check=False, start_new_session=True
    )
    if "dies " not in victim.stdout:
        raise RuntimeError(f"the driver never came to its death: {victim.stdout}\n{victim.stderr[-2_000:]}")
    return victim.stdout
