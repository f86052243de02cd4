"""A few faults on real containers: who is killed, paused or cut off from ZooKeeper is followed, and nobody is harmed.

It needs a Docker engine. Where none answers, it brings one up with the script ``up`` in the directory that
``PYTHIA_COMPOSE_ENGINE`` names, by default ``shared/compose-engine`` beside the project, which needs root, and takes it
down with ``stop``. Else the test is skipped, and says why in the run's summary.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from devcluster.artifacts import committed_list
from devcluster.jars import jar_directory
from drills.compose.engine import NoEngine, find_compose
from tests.console.browser import NoBrowser, browser_path
from tests.imports import ROOT

pytestmark = pytest.mark.integration

UP_SECONDS_MAX = 600
DRILL_SECONDS_MAX = 1_200
FAULTS = ("kill", "pause", "cut-zookeeper")
LEASE_MS = 2_000
LEFT_OUT = {"docs", "tests", "__pycache__"}


@pytest.fixture(scope="module")
def engine() -> Iterator[dict[str, str]]:
    """The environment of commands for a Docker engine; one that was not there before is gone afterwards."""
    try:
        find_compose()
    except NoEngine as error:
        reason = str(error).splitlines()[0]
    else:
        yield dict(os.environ)
        return
    directory = Path(os.environ.get("PYTHIA_COMPOSE_ENGINE") or ROOT.parent / "shared" / "compose-engine")
    if os.geteuid() != 0 or not (directory / "up").is_file():
        pytest.skip(
            f"NO DRILL ON CONTAINERS: {reason}; to have an engine started, be root and set PYTHIA_COMPOSE_ENGINE to a "
            f"directory with its scripts up and stop"
        )
    # apt-get is the script's from here on: what another process of the tests installs by it comes before.
    with suppress(NoBrowser):
        browser_path()
    # Its base images are on no registry, which BuildKit would ask.
    environment = {**os.environ, "DOCKER_BUILDKIT": "0"}
    try:
        brought_up = subprocess.run(
            [directory / "up"], capture_output=True, text=True, timeout=UP_SECONDS_MAX, check=False
        )
        if brought_up.returncode != 0:
            pytest.skip(f"NO DRILL ON CONTAINERS: {reason}; and {directory / 'up'} failed: {brought_up.stderr[-500:]}")
        yield environment
    finally:
        subprocess.run([directory / "stop"], capture_output=True, env=environment, timeout=UP_SECONDS_MAX, check=False)


@pytest.fixture(scope="module")
def compose_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's, beside a copy of what the images are made of, with the jars that this machine has already."""
    project = tmp_path_factory.mktemp("compose") / "pythia"
    shutil.copytree(ROOT, project, ignore=lambda _, names: [name for name in names if is_left_out(name)])
    jars = jar_directory(committed_list())
    if jars.is_dir():
        shutil.copytree(jars, project / "docker" / "cache" / jars.name, dirs_exist_ok=True)
    return project / "docker-compose.yml"


def is_left_out(name: str) -> bool:
    return (name.startswith(".") and name != ".dockerignore") or name in LEFT_OUT or name.endswith(".egg-info")


@pytest.mark.timeout(UP_SECONDS_MAX + DRILL_SECONDS_MAX)
def test_containers_are_killed_paused_and_cut_off_and_nobody_is_harmed(
    engine: dict[str, str], compose_file: Path, tmp_path: Path
) -> None:
    kinds = [option for name in FAULTS for option in ("--fault", name)]
    where = ["--file", str(compose_file), "--directory", str(tmp_path / "drill")]
    program = [sys.executable, "-c", "from tso.commands.main import main; main()"]
    command = [*program, "drill", "compose", "--faults", str(len(FAULTS)), *kinds, *where, "--json"]
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env=engine,
        capture_output=True,
        text=True,
        timeout=DRILL_SECONDS_MAX,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4_000:]
    report = json.loads(ended.stdout)
    harms = ("anomalies", "lost_commits", "duplicate_timestamps", "deposed_answers", "aborted_by_failover")
    assert {name: report[name] for name in harms} == dict.fromkeys(harms, 0)
    assert (report["faults"], report["lease_ms"]) == (len(FAULTS), LEASE_MS)
    assert sorted(each["fault"] for each in report["each"]) == sorted(FAULTS)
    for each in report["each"]:
        assert each["took_over"], each
        assert each["took_over"][0] != each["victim"]
        assert each["in_flight"] >= 10
    left = subprocess.run(
        ["docker", "ps", "--all", "--quiet", "--filter", "name=pythia-drill-"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert left.stdout == ""
