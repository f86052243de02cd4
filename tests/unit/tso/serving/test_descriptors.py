"""How many files and connections an oracle may have open."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from tso.serving.descriptors import descriptors_needed, raise_descriptor_limit

CONNECTIONS = 1_000


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The last one is in force."""
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limit: limits.append(limit))
    return limits


@pytest.mark.parametrize("hard", [descriptors_needed(CONNECTIONS), resource.RLIM_INFINITY])
def test_the_soft_limit_is_raised_as_far_as_the_system_allows(
    limits: list[tuple[int, int]], hard: int, caplog: pytest.LogCaptureFixture
) -> None:
    limits.append((1_024, hard))
    raise_descriptor_limit(CONNECTIONS)
    assert limits[-1] == (hard, hard)
    assert not caplog.messages


def test_it_is_told_where_that_is_too_little(limits: list[tuple[int, int]], caplog: pytest.LogCaptureFixture) -> None:
    limits.append((64, 64))
    raise_descriptor_limit(CONNECTIONS)
    assert limits == [(64, 64)]
    (line,) = caplog.messages
    assert "connections_max" in line
    assert "LimitNOFILE" in line


def test_all_connections_that_are_let_near_have_room() -> None:
    inside, outside, being_told = CONNECTIONS, CONNECTIONS, CONNECTIONS
    assert descriptors_needed(CONNECTIONS) > inside + outside + being_told


def test_what_is_opened_later_takes_no_standard_number_that_was_closed() -> None:
    """A child's pipe would be laid over the socket that it is to listen on."""
    program = (
        "from tso.serving.descriptors import *; hold_standard_descriptors(); import socket; "
        "print(socket.socket().fileno())"
    )
    closed = ["bash", "-c", 'exec "$0" -c "$1" <&-', sys.executable, program]
    shown = subprocess.run(closed, capture_output=True, text=True, check=True, timeout=60)
    assert int(shown.stdout) > 2
