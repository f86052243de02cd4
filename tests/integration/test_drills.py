"""The drill of dead writers, small: all or nothing at every step, and what is healable gets healed."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from click.testing import CliRunner

from client import ClientSettings, CommitStep
from drills import writer_kill
from drills.commands import drill

pytestmark = [pytest.mark.integration, pytest.mark.takes_minutes]


def test_a_dead_writer_leaves_all_or_nothing(oracle: ClientSettings) -> None:
    findings = list(writer_kill.run(oracle, rounds=2, rows=20))
    assert Counter(finding.step for finding in findings) == dict.fromkeys(writer_kill.FATAL_STEPS, 2)
    assert [finding.anomaly for finding in findings if finding.anomaly] == []
    answered = [finding for finding in findings if finding.step is CommitStep.ANSWERED]
    assert [(finding.shadows_before, finding.shadows_after) for finding in answered] == [(0, 40)] * 2


def test_the_command_says_what_it_found(oracle: ClientSettings) -> None:
    options = ["--zookeeper", oracle.zookeeper, "--thrift", oracle.thrift, "--root", oracle.root, "--rounds", "1"]
    ended = CliRunner().invoke(drill, ["writer-kill", *options, "--rows", "5", "--json"])
    assert ended.exit_code == 0, ended.output
    assert json.loads(ended.output) == {"kills": 3, "anomalies": []}


def test_a_wrong_count_is_refused_in_words(oracle: ClientSettings) -> None:
    options = ["--zookeeper", oracle.zookeeper, "--thrift", oracle.thrift, "--rounds", "0"]
    ended = CliRunner().invoke(drill, ["writer-kill", *options])
    assert ended.exit_code == 2
    assert "1<=x<=10000" in ended.output
