"""The lists of broken rules are about the code that is there: an entry that breaks nothing would prove nothing."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from tests.imports import ROOT
from tests.mutations.__main__ import changed_since, chosen, copy_project, run_tests, stale_entries
from tests.mutations.mutation import Mutation
from tests.mutations.rules import RULES
from tests.spark_jobs.breaking import BROKEN


def test_each_entry_finds_its_rule_once() -> None:
    assert list(stale_entries(ROOT, [*RULES, *BROKEN])) == []


def test_a_copy_of_the_project_has_all_that_a_test_could_read(tmp_path: Path) -> None:
    copy_project(ROOT, tmp_path)
    left_out = {path.name for path in ROOT.iterdir()} - {path.name for path in tmp_path.iterdir()}
    assert {name for name in left_out if not name.startswith(".") and not name.endswith(".egg-info")} <= {"build"}


def test_each_entry_names_tests_that_there_are() -> None:
    named = {test for mutation in RULES for test in mutation.caught_by.split()}
    found = run_tests(ROOT, named, "--collect-only")  # here, and in no copy: here their byte code is
    assert found.exit_code == 0, found.last_lines


def test_those_are_run_that_have_to_do_with_what_is_named_or_has_changed() -> None:
    tests = "unit/access/test_gate.py::test_it unit/kernels/test_kernels.py"
    one = Mutation("Nobody waits", "access/gate.py", "x", "y", tests)
    other = Mutation("everybody waits", "access/tokens.py", "x", "y", "unit/access/test_tokens.py")
    assert chosen([one, other]) == [one, other]
    for words in (["nobody"], ["access/G"], ["test_it", "nowhere"]):
        assert chosen([one, other], words) == [one]
    for changed in ("access/gate.py", "tests/unit/kernels/test_kernels.py", "tests/unit/access/test_gate.py"):
        assert chosen([one, other], ["waits"], frozenset([changed])) == [one]
    with pytest.raises(click.UsageError, match="--list"):
        chosen([one, other], ["nobody"], frozenset(["access/tokens.py"]))


def test_a_commit_that_there_is_not_is_told_of() -> None:
    with pytest.raises(click.UsageError, match="what changed since 'no-such-commit'"):
        changed_since("no-such-commit")
