"""Alerts, dashboard and documentation speak of the metrics that oracles, REST and programs have, and of all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import yaml

from client.metrics.meter import RESULTS, STEPS
from rest.metering import CAUSES, GONE, NO_ROUTE, OK
from rest.problems import KINDS
from rest.roles import ROLES
from tests.counted import FAMILIES, OF_ORACLES, OF_PROGRAMS, OF_REST, family_named
from tests.imports import ROOT
from tso.serving.observing import QUEUES
from wire import Reason, Role
from wire.metric_families import Family, family_of

OPERATIONS = ROOT / "operations"
DOCUMENTED = ROOT / "docs" / "operations" / "metrics.md"
LABELS = {
    "role": {role.name.lower() for role in Role},
    "reason": {reason.name.lower() for reason in Reason},
    "queue": set(QUEUES),
    "operation": {*ROLES, NO_ROUTE},
    "result": set(RESULTS),
    "step": set(STEPS),
    "cause": set(CAUSES),
}
ANSWERS = {
    "pythia_refusals_total": {"overloaded", "not_primary", "bad_request", "not_allowed"},
    "pythia_rest_requests_total": {*KINDS, OK, GONE},
}
"""What the label ``answer`` says, by metric."""


def alert_rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load((OPERATIONS / "alerts.yml").read_text())["groups"]
    return list(group["rules"])


def dashboard_targets() -> Iterator[dict[str, Any]]:
    for panel in json.loads((OPERATIONS / "dashboard.json").read_text())["panels"]:
        yield from panel["targets"]


OF_PROMETHEUS = 'up{job="pythia"} == 0'
"""The one expression that asks for no metric of ours: there is none while an oracle is not scraped."""
EXPRESSIONS = [
    *(rule["expr"] for rule in alert_rules() if rule["expr"] != OF_PROMETHEUS),
    *(target["expr"] for target in dashboard_targets()),
]


def table_of_metrics(families: Sequence[Family]) -> str:
    lines = ["| metric | type | labels | meaning |", "| --- | --- | --- | --- |"]
    for family in families:
        labels = ", ".join(f"`{label}`" for label in family.labels)
        lines.append(f"| `{family.name}` | {family.kind} | {labels} | {family.text} |")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_uses_metrics_that_exist_with_labels_that_they_have(expression: str) -> None:
    used = re.findall(r"\b(pythia_\w+)(?:\{([^}]*)\})?", expression)
    assert used
    for name, selector in used:
        family = family_named(name)
        assert family is not None, name
        assert family.kind != "histogram" or name != family.name, f"{name} is a histogram: name one of its parts"
        for label, value in re.findall(r'(\w+)="([^"]*)"', selector):
            assert label in family.labels
            assert value in (ANSWERS[family.name] if label == "answer" else LABELS[label])


def test_each_alert_says_what_it_is_and_what_to_do() -> None:
    names = [rule["alert"] for rule in alert_rules()]
    assert len(set(names)) == len(names)
    for rule in alert_rules():
        assert set(rule["annotations"]) == {"summary", "action", "runbook_url"}
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_an_oracle_that_is_not_scraped_is_told_by_the_job_that_the_documentation_names() -> None:
    assert [rule["alert"] for rule in alert_rules() if rule["expr"] == OF_PROMETHEUS] == ["PythiaNotScraped"]
    [block] = re.findall(r"```yaml\n(.*?)```", DOCUMENTED.read_text(), re.DOTALL)
    [job] = yaml.safe_load(block)["scrape_configs"]
    assert job["job_name"] == "pythia"


def test_a_process_that_is_started_again_and_again_may_have_another_name_each_time() -> None:
    [expression] = [rule["expr"] for rule in alert_rules() if rule["alert"] == "PythiaRestarts"]
    assert "max without (process) (pythia_process_start_time_seconds)" in expression


def test_every_metric_is_on_the_dashboard() -> None:
    shown = {
        family_named(name) for target in dashboard_targets() for name in re.findall(r"\bpythia_\w+", target["expr"])
    }
    assert {family.name for family in FAMILIES} == {family.name for family in shown if family is not None}


def test_panels_do_not_share_an_id() -> None:
    identifiers = [panel["id"] for panel in json.loads((OPERATIONS / "dashboard.json").read_text())["panels"]]
    assert len(set(identifiers)) == len(identifiers)


@pytest.mark.parametrize(
    ("mark", "families"), [("metrics", OF_ORACLES), ("metrics of REST", OF_REST), ("metrics of programs", OF_PROGRAMS)]
)
def test_the_documentation_has_the_tables_of_all_metrics(mark: str, families: Sequence[Family]) -> None:
    found = DOCUMENTED.read_text().partition(f"<!-- {mark} -->\n")[2].partition(f"<!-- end of {mark} -->")[0]
    assert found == table_of_metrics(families), f"put this in its place:\n{table_of_metrics(families)}"


@pytest.mark.parametrize(("label", "values"), [("result", RESULTS), ("step", STEPS), ("cause", CAUSES)])
def test_the_documentation_says_what_each_value_of_a_label_is(label: str, values: Sequence[str]) -> None:
    told = DOCUMENTED.read_text().partition(f"\n| `{label}` |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", told, re.MULTILINE) == list(values)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_names_follow_the_conventions(family: Family) -> None:
    assert re.fullmatch(r"pythia_[a-z_]+", family.name)
    assert (family.kind == "counter") == family.name.endswith("_total")
    assert not family.name.endswith(("_ms", "_milliseconds", "_sum", "_count", "_bucket"))
    assert family.text.endswith(".")
    assert set(family.labels) <= {*LABELS, "answer"}


def test_parts_of_a_histogram_belong_to_it_and_to_nothing_else() -> None:
    assert family_of("pythia_commit_seconds_bucket") == family_of("pythia_commit_seconds_sum")
    assert family_of("pythia_commits_total_bucket") is None
    assert family_of("pythia_nothing") is None
