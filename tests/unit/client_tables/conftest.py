"""An installation in one process, and the command line on it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from client import ClientSettings, TransactionManager
from client.tables.commands import table
from tests.unit.client.conftest import Installation, empty_installation, installation, made_anew_at_once, manager

__all__ = ["empty_installation", "installation", "made_anew_at_once", "manager"]

Run = Callable[..., Result]


@pytest.fixture
def run(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> Run:
    """``pythia table`` with these arguments, on the installation."""
    return running(table, installation, monkeypatch)


def running(group: click.Group, installation: Installation, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A group of commands with these arguments, on the installation."""

    def connect(settings: ClientSettings) -> TransactionManager:
        return installation.manager()

    monkeypatch.setattr(TransactionManager, "connect", connect)
    monkeypatch.setenv("PYTHIA_ZOOKEEPER", "127.0.0.1:1")
    monkeypatch.setenv("PYTHIA_THRIFT", "127.0.0.1:1")
    return lambda *arguments: CliRunner().invoke(group, [str(argument) for argument in arguments])


def done(result: Result) -> Any:
    """What a command that ended well printed, read as JSON."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(result: Result, code: int = 1) -> str:
    """The message of a command that was refused, without a traceback."""
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    return result.stderr
