"""Commands for data as processes of their own, on an installation."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

from client import ClientSettings
from tests.imports import ROOT

PROGRAM = (
    "from tso.commands.main import main; from client.tables.commands import table; "
    "from client.backups.commands import backup; main.add_command(table); main.add_command(backup); main()"
)
"""As ``pythia`` is started, in a tree whose entry points need not be installed."""
ENDS_SECONDS_MAX = 120


def environment_of(settings: ClientSettings) -> dict[str, str]:
    """By which a process finds the project and the installation."""
    return os.environ | {
        "PYTHONPATH": str(ROOT),
        "PYTHIA_ZOOKEEPER": settings.zookeeper,
        "PYTHIA_THRIFT": settings.thrift,
        "PYTHIA_ROOT": settings.root,
    }


class Command:
    """``pythia GROUP …`` on one installation."""

    def __init__(self, settings: ClientSettings, group: str) -> None:
        self._group = group
        self._environment = environment_of(settings)

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, self._group, *map(str, arguments)],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def done(self, *arguments: object) -> Any:
        out, err, code = self._end(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    def refused(self, *arguments: object, code: int = 1) -> str:
        out, err, ended = self._end(*arguments)
        assert ended == code, (out, err)
        assert "Traceback" not in err
        return err

    def killed_once_it_said(self, line: str, *arguments: object) -> None:
        """``line``: the first on standard error."""
        process = self.start(*arguments)
        with process:
            assert process.stderr is not None
            assert process.stderr.readline() == f"{line}\n"
            process.kill()
        assert process.returncode == -signal.SIGKILL

    def _end(self, *arguments: object) -> tuple[str, str, int]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=ENDS_SECONDS_MAX)
        return out, err, process.returncode
