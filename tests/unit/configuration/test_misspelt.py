"""Variables that were meant for a setting are told, and no others."""

from __future__ import annotations

import logging

import pytest
from click.testing import CliRunner

from client.configured import load_settings
from configuration.misspelt import misspelt
from tso.commands.main import main

OTHERS = ("PYTHIA_ZOOKEEPER_CREDENTIALS",)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("PYTHIA_LEASE_MSS", "PYTHIA_LEASE_MS"),
        ("PYTHIA_LEASEMS", "PYTHIA_LEASE_MS"),
        ("PYTHIA_THIRFT", "PYTHIA_THRIFT"),
        ("PYTHIA_LIMIT", "PYTHIA_LIMITS"),
        ("PYTHIA_CLIENT_DEADLINE", "PYTHIA_CLIENT_DEADLINE_MS"),
        ("PYTHIA_CONFIGS", "PYTHIA_CONFIG"),
        ("PYTHIA_ZOOKEEPER_CREDENTIAL", "PYTHIA_ZOOKEEPER_CREDENTIALS"),
    ],
)
def test_what_is_nearly_a_settings_variable_is_told(name: str, meant: str) -> None:
    assert misspelt({name: "1", "HOME": "/"}, OTHERS) == [f"nobody reads the variable {name}: did you mean {meant}?"]


@pytest.mark.parametrize(
    "name",
    [
        *("PYTHIA_LEASE_MS", "PYTHIA_LIMITS", "PYTHIA_CONFIG", "PYTHIA_CLIENT_DEADLINE_MS", *OTHERS),
        *("PYTHIA_REST_PORT_1", "PYTHIA_SERVICE_HOST", "PYTHIA_PORT_5480_TCP", "PYTHIA_TEST_THRIFT", "LEASE_MSS"),
    ],
)
def test_what_somebody_reads_or_nobody_here_could_have_meant_is_not(name: str) -> None:
    assert misspelt({name: "1"}, OTHERS) == []


def test_a_program_is_told(caplog: pytest.LogCaptureFixture) -> None:
    given = {"PYTHIA_ZOOKEEPER": "h:1", "PYTHIA_THRIFT": "h:2", "PYTHIA_TOKEN": "t"}
    with caplog.at_level(logging.WARNING):
        load_settings(environment={**given, "PYTHIA_ZOOKEEPER_CREDENTIALS": "u:p"})
        assert not caplog.messages
        load_settings(environment={**given, "PYTHIA_CLIENT_DEADLINE_MSS": "5"})
    assert caplog.messages == [
        "nobody reads the variable PYTHIA_CLIENT_DEADLINE_MSS: did you mean PYTHIA_CLIENT_DEADLINE_MS?"
    ]


def test_an_oracle_tells_it_before_it_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHIA_LEASE_MSS", "2000")
    arguments = ["tso", "serve", "--alone", "--thrift", "127.0.0.1:1", "--listen", "127.0.0.1:0"]
    ended = CliRunner().invoke(main, arguments)
    assert "nobody reads the variable PYTHIA_LEASE_MSS: did you mean PYTHIA_LEASE_MS?" in ended.output
