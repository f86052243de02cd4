"""Jobs on Hadoop's YARN, which starts a driver once more where it is lost: what the job claims lands once."""

from __future__ import annotations

import os
import signal
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from access.roles import AccessRole
from client import ClientSettings, TransactionManager
from client.claims import claim_of
from client.spark import create_table
from drills.waiting import wait_until
from tests.conftest import Services
from tests.integration.client_spark.conftest import counts_mapping, counts_of
from tests.integration.oracle_processes import primary
from tests.listed_jars import listed
from tests.spark_jobs.machines import strike
from tests.spark_jobs.processes import parent
from tests.tokens import Keyring
from tests.yarn import job
from tests.yarn.cluster import PLACE, Yarn, hadoop_of_pyspark, running

STORY_SECONDS_MAX = 900
"""Four drivers, one after the other, each with an executor: on a busy machine that takes longer than any test may."""

pytestmark = [
    pytest.mark.integration,
    pytest.mark.with_spark,
    pytest.mark.takes_minutes,
    pytest.mark.timeout(STORY_SECONDS_MAX),
]

ROWS = 1_000
WAIT_SECONDS_MAX = 240.0


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    ours = listed(PLACE)[0].version
    if hadoop_of_pyspark() != ours:
        pytest.skip(f"the YARN of the tests is of Hadoop {ours}, and PySpark's clients are of {hadoop_of_pyspark()}")
    with running(tmp_path_factory.mktemp("yarn")) as made:
        yield made


@pytest.fixture(scope="module")
def keyring(tmp_path_factory: pytest.TempPathFactory) -> Keyring:
    made = Keyring(tmp_path_factory.mktemp("secrets") / "tokens.toml")
    made.add("etl", AccessRole.TRANSACT)
    return made


@pytest.fixture(scope="module")
def guarded(services: Services, keyring: Keyring) -> Iterator[ClientSettings]:
    """Where an oracle serves that wants a token of everybody."""
    root = f"/pythia-yarn-{uuid.uuid4().hex[:8]}"
    settings = ClientSettings(services.zookeeper, services.thrift, root, token_file=keyring.file_of("etl"))
    with primary(settings, "--tokens-file", str(keyring.path)):
        yield settings


@pytest.fixture(scope="module")
def manager(guarded: ClientSettings) -> Iterator[TransactionManager]:
    with TransactionManager.connect(guarded) as made:
        yield made


@dataclass(frozen=True)
class Submitted:
    """A job that YARN runs; ``place``: where its attempts say how far they are."""

    yarn: Yarn
    process: subprocess.Popen[bytes]
    place: Path

    def until(self, attempt: int, moment: str) -> int:
        """Wait until an attempt is there; its process."""
        said = self.place / str(attempt) / moment
        wait_until(
            lambda: said.exists() and said.read_text() != "",
            f"{moment!r} of attempt {attempt}",
            WAIT_SECONDS_MAX,
            self.yarn.last_words,
        )
        return int(said.read_text())

    def go_on(self, attempt: int, moment: str) -> None:
        (self.place / f"hold-{attempt}-{moment}").unlink()

    def ended(self) -> dict[int, str]:
        """What each attempt came to, that came to something."""
        return {int(said.parent.name): said.read_text() for said in self.place.glob("*/ended")}

    def wait(self) -> int:
        """Until YARN says that the job has ended; 0: well."""
        return self.process.wait(WAIT_SECONDS_MAX)


@dataclass(frozen=True)
class World:
    """Two tables for a job to write."""

    yarn: Yarn
    settings: ClientSettings
    manager: TransactionManager
    place: Path
    table: str

    @property
    def tables(self) -> tuple[str, str]:
        return self.table, f"{self.table}_others"

    def submit(self, *held: tuple[int, str]) -> Submitted:
        """``held``: where it waits: an attempt and a moment each."""
        for attempt, moment in held:
            (self.place / f"hold-{attempt}-{moment}").touch()
        token = Path(self.settings.token_file)
        on_machines = replace(self.settings, token_file=token.name).to_json()
        arguments = [on_machines, *self.tables, str(ROWS), self.table, str(self.place)]
        addresses = {f"spark.pythia.{name}": getattr(self.settings, name) for name in ("zookeeper", "thrift", "root")}
        process = self.yarn.submit(self.table, Path(job.__file__), arguments, [token], addresses)
        return Submitted(self.yarn, process, self.place)

    def landed(self) -> int:
        """Which attempt: by the rows of both tables, which agree, and by the claim; 0: none."""
        first, second = (counts_of(self.manager, table) for table in self.tables)
        attempt = first.get(0, 0)
        assert first == second == (dict.fromkeys(range(ROWS), attempt) if attempt else {})
        assert (claim_of(self.manager, self.table) is not None) == (attempt > 0)
        return attempt


@pytest.fixture
def world(yarn: Yarn, guarded: ClientSettings, manager: TransactionManager, table: str, tmp_path: Path) -> World:
    place = tmp_path / "place"
    place.mkdir()
    for name in (table, f"{table}_others"):
        create_table(manager, counts_mapping(name))
    return World(yarn, guarded, manager, place, table)


def test_a_job_whose_drivers_are_lost_and_stand_still_lands_once(world: World) -> None:
    """The first one, which has written all and is about to commit, stands still with its machine. The second is lost in
    the middle of its writes, and the third after its commit, before it could say that it has ended.
    """
    submitted = world.submit((1, job.WRITTEN), (2, job.HALF), (3, job.LANDED))
    first = submitted.until(1, job.WRITTEN)
    machine = world.yarn.node_of(first)
    strike(machine, signal.SIGSTOP)
    try:
        strike(parent(submitted.until(2, job.HALF)), signal.SIGKILL)
        assert world.landed() == 0
        third = submitted.until(3, job.LANDED)
        assert world.landed() == 3
        strike(parent(third), signal.SIGKILL)
        assert submitted.wait() == 0
        assert submitted.ended() == {3: "landed", 4: "has landed before"}
        submitted.go_on(1, job.WRITTEN)
        os.kill(first, signal.SIGCONT)  # before its machine is told to end it
        wait_until(lambda: 1 in submitted.ended(), "the driver that stood still", WAIT_SECONDS_MAX)
    finally:
        strike(machine, signal.SIGCONT)
        submitted.process.kill()
    assert submitted.ended() == {1: "has landed before", 3: "landed", 4: "has landed before"}
    assert world.landed() == 3
