"""The lists of broken rules are about the code that is there: an entry that breaks nothing would prove nothing."""

from __future__ import annotations

from tests.mutations.__main__ import ROOT, stale_entries
from tests.mutations.rules import RULES
from tests.spark_jobs.breaking import BROKEN


def test_each_entry_finds_its_rule_once() -> None:
    assert list(stale_entries(ROOT, [*RULES, *BROKEN])) == []


def test_each_entry_names_tests_that_are_there() -> None:
    named = {test.partition("::")[0] for mutation in [*RULES, *BROKEN] for test in mutation.caught_by.split()}
    assert {test for test in named if not (ROOT / "tests" / test).exists()} == set()
