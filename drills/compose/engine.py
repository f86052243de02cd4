"""Docker and docker-compose by their command lines: each command with a limit, each failure in words.

Invariant: every command names its project, container or network; nothing of another project is ever touched.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from drills.errors import DrillError

COMMAND_SECONDS_MAX: Final = 120.0
BUILD_SECONDS_MAX: Final = 3_600.0
SHOWN_LINES_MAX: Final = 12


class NoEngine(DrillError):
    """There is no Docker engine that this process may use; the text says what to do."""


class CommandFailed(DrillError):
    """A command of Docker's ended badly, or not in time."""


def run(
    command: Sequence[str],
    *,
    seconds_max: float = COMMAND_SECONDS_MAX,
    environment: Mapping[str, str] | None = None,
    text: str | None = None,
) -> str:
    """What a command prints. ``text``: its standard input; ``environment``: variables besides ours.

    Raises ``CommandFailed`` with the end of what it said.
    """
    shown = " ".join(command[:6])
    try:
        ended = subprocess.run(
            command,
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            text=True,
            timeout=seconds_max,
            env={**os.environ, **(environment or {})},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(f"'{shown} …' did not end within {seconds_max:.0f} s") from error
    except OSError as error:
        raise CommandFailed(f"'{shown} …' cannot be run: {error}") from error
    if ended.returncode != 0:
        lines = (ended.stdout + ended.stderr).strip().splitlines()[-SHOWN_LINES_MAX:]
        raise CommandFailed("\n  ".join([f"'{shown} …' ended with {ended.returncode}:", *lines]))
    return ended.stdout


def find_compose() -> tuple[str, ...]:
    """The command of docker compose, v2 or v1, after making sure of an engine on this machine.

    Raises ``NoEngine``.
    """
    if shutil.which("docker") is None:
        raise NoEngine("the command docker was not found: install Docker and docker-compose to run this drill")
    try:
        kernel = json.loads(run(["docker", "info", "--format", "{{json .KernelVersion}}"]) or '""')
    except (CommandFailed, ValueError) as error:
        raise NoEngine(explain(str(error))) from error
    if kernel != os.uname().release:
        # Outages are measured by one monotonic clock, which processes of one kernel share.
        raise NoEngine(
            f"the Docker engine runs on another machine (kernel {kernel}): run the drill where the engine is"
        )
    for command in (("docker", "compose"), ("docker-compose",)):
        if shutil.which(command[0]) and _answers([*command, "version"]):
            return command
    raise NoEngine("neither 'docker compose' nor docker-compose was found: install one of them")


def _answers(command: Sequence[str]) -> bool:
    try:
        run(command)
    except CommandFailed:
        return False
    return True


def explain(said: str) -> str:
    """What to do about an engine that does not answer. Pure."""
    if "permission denied" in said.lower():
        return "no right to use the Docker engine: run the drill as root, or as a member of the group docker"
    return f"no Docker engine answers: start it (systemctl start docker), or set DOCKER_HOST. {said}"


class Project:
    """The containers of one compose file under a name of their own. ``variables``: what the file leaves open."""

    def __init__(self, compose: Sequence[str], file: Path, name: str, variables: Mapping[str, str]) -> None:
        if not file.is_file():
            raise DrillError(f"there is no {file}: run the drill in the project's directory, or give --file")
        self.name = name
        self._command = [*compose, "--profile", "drill", "--project-name", name, "--file", str(file)]
        self._variables = variables

    def compose(self, *arguments: str, seconds_max: float = COMMAND_SECONDS_MAX) -> str:
        """Run a command of docker-compose. Raises ``CommandFailed``."""
        return run([*self._command, *arguments], seconds_max=seconds_max, environment=self._variables)

    def container(self, service: str) -> str:
        """The id of a service's container, running or not. Raises ``CommandFailed`` where there is none."""
        filters = [f"label=com.docker.compose.project={self.name}", f"label=com.docker.compose.service={service}"]
        options = [option for each in filters for option in ("--filter", each)]
        found = docker("ps", "--all", "--quiet", *options).split()
        if len(found) != 1:
            raise CommandFailed(f"{len(found)} containers of {service} in the project {self.name}, where one should be")
        return found[0]

    def network(self, name: str) -> str:
        """The engine's name of a network of the file."""
        return f"{self.name}_{name}"

    def ending(self) -> list[list[str]]:
        """The commands that leave nothing of it, whatever state it is in."""
        return [[*self._command, "unpause"], [*self._command, "down", "--volumes", "--timeout", "2"]]


def docker(*arguments: str) -> str:
    """Run a command of docker. Raises ``CommandFailed``."""
    return run(["docker", *arguments])
