"""What is said where there is no engine, and which commands a project gives; docker is a script here."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from drills.commands import drill
from drills.compose.engine import CommandFailed, NoEngine, Project, explain, find_compose, run
from drills.errors import DrillError

Script = Callable[[str, str], None]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """Put a shell script of that name on a PATH on which nothing else is."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def write(name: str, body: str) -> None:
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)

    return write


def info(kernel: str) -> str:
    return f'if [ "$1" = info ]; then echo \'"{kernel}"\'; exit 0; fi'


def test_without_docker_it_says_what_to_install(script: Script) -> None:
    with pytest.raises(NoEngine, match="the command docker was not found: install Docker"):
        find_compose()


def test_without_an_engine_it_says_to_start_one(script: Script) -> None:
    script("docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    with pytest.raises(NoEngine, match=r"no Docker engine answers: start it [\s\S]*Cannot connect"):
        find_compose()


def test_without_rights_it_says_whom_to_be(script: Script) -> None:
    script("docker", "echo 'Got permission denied while trying to connect' >&2; exit 1")
    with pytest.raises(NoEngine, match="run the drill as root, or as a member of the group docker"):
        find_compose()


def test_an_engine_on_another_machine_is_refused(script: Script) -> None:
    script("docker", info("1.2.3-elsewhere"))
    with pytest.raises(NoEngine, match=r"kernel 1\.2\.3-elsewhere"):
        find_compose()


def test_either_compose_will_do(script: Script) -> None:
    here = os.uname().release
    script("docker", info(here) + "; exit 1")
    with pytest.raises(NoEngine, match="neither 'docker compose' nor docker-compose"):
        find_compose()
    script("docker-compose", "exit 0")
    assert find_compose() == ("docker-compose",)
    script("docker", info(here))
    assert find_compose() == ("docker", "compose")


def test_the_command_ends_with_one_line_where_there_is_no_engine(script: Script, tmp_path: Path) -> None:
    (tmp_path / "docker-compose.yml").touch()
    ended = CliRunner().invoke(drill, ["compose", "--file", str(tmp_path / "docker-compose.yml")])
    assert ended.exit_code == 1
    assert ended.output.strip() == "Error: " + (
        "the command docker was not found: install Docker and docker-compose to run this drill"
    )


def test_a_missing_compose_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DrillError, match="run the drill in the project's directory, or give --file"):
        Project(["docker-compose"], tmp_path / "none.yml", "drill", {})


def test_every_command_of_a_project_names_it(script: Script, tmp_path: Path) -> None:
    file = tmp_path / "docker-compose.yml"
    file.touch()
    script("docker-compose", 'echo "$@ with lease $PYTHIA_LEASE_MS"')
    project = Project(["docker-compose"], file, "drill-7", {"PYTHIA_LEASE_MS": "900"})
    named = f"--profile drill --project-name drill-7 --file {file}"
    assert project.compose("up", "tso-1").strip() == f"{named} up tso-1 with lease 900"
    assert project.network("storage") == "drill-7_storage"
    for command in project.ending():
        assert " ".join(command).startswith(f"docker-compose {named} ")


def test_a_container_is_found_by_project_and_service(script: Script, tmp_path: Path) -> None:
    file = tmp_path / "docker-compose.yml"
    file.touch()
    project = Project(["docker-compose"], file, "drill-7", {})
    script("docker", '[ "$5" = label=com.docker.compose.project=drill-7 ] && echo "${7##*=}-id"')
    assert project.container("tso-1") == "tso-1-id"
    script("docker", "exit 0")
    with pytest.raises(CommandFailed, match="0 containers of tso-1 in the project drill-7"):
        project.container("tso-1")


def test_a_command_that_fails_or_hangs_is_told_with_what_it_said() -> None:
    failing = [sys.executable, "-c", "import sys; print('half'); sys.exit('because of this')"]
    with pytest.raises(CommandFailed, match=r"ended with 1:\n  half\n  because of this"):
        run(failing)
    with pytest.raises(CommandFailed, match="did not end within 0 s"):
        run([sys.executable, "-c", "import time; time.sleep(60)"], seconds_max=0.05)
    with pytest.raises(CommandFailed, match="cannot be run"):
        run(["/nowhere/docker"])


def test_a_command_reads_its_text_and_our_variables() -> None:
    code = "import os, sys; print(sys.stdin.read() + os.environ['ADDED'])"
    assert run([sys.executable, "-c", code], text="given, ", environment={"ADDED": "added"}) == "given, added\n"


def test_what_docker_says_is_kept() -> None:
    assert "is it up?" in explain("is it up?")
