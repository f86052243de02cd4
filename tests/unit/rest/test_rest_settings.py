"""What a REST process makes of the options that its oracle hands to it."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest
from click.testing import CliRunner

from client import ClientSettings
from rest import __main__ as rest_process
from rest.services import Installation


class Made(Exception):
    """The application would be made now."""


def settings_of(monkeypatch: pytest.MonkeyPatch, *options: str) -> ClientSettings:
    """Those with which a process of these options goes to the installation."""
    found: list[ClientSettings] = []

    def connect(settings: ClientSettings, *_: str) -> None:
        found.append(settings)

    def create_app(connects: Callable[[], Installation], *_: object, **__: object) -> None:
        connects()
        raise Made

    monkeypatch.setattr(rest_process, "connect", connect)
    monkeypatch.setattr(rest_process, "create_app", create_app)
    monkeypatch.setattr(rest_process, "configure_logs", lambda *_: None)
    with socket.socket() as listening:
        needed = ["--oracle", "o:1", "--thrift", "t:1", "--root", "/r", "--listening-socket", str(listening.fileno())]
        ended = CliRunner().invoke(rest_process.main, [*needed, *options])
    assert isinstance(ended.exception, Made), ended.output
    return found[0]


def test_shadow_cells_are_written_when_the_oracles_options_say(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings_of(monkeypatch).shadow_cells == "written"
    assert settings_of(monkeypatch, "--shadow-cells", "in_background").shadow_cells == "in_background"


def test_limits_become_those_of_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_of(monkeypatch, "--limit", "threads_max=3", "--limit", "deadline_ms=777")
    assert (settings.store_connections_max, settings.deadline_ms) == (3, 777)
    assert (settings.oracle, settings.zookeeper) == ("o:1", "")
    beside_others = settings_of(monkeypatch, "--zookeeper", "z:1")
    assert (beside_others.oracle, beside_others.zookeeper) == ("", "z:1")
