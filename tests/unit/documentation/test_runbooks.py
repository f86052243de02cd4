"""Each alert has a runbook, where its annotation says, and each runbook has an alert."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.imports import ROOT
from tests.unit.documentation.pages import anchors, text_of

PAGE = "docs/operations/runbooks.md"


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load((ROOT / "operations" / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def runbook(alert: str) -> str:
    """The part of the page below the alert's heading."""
    return text_of(PAGE).partition(f"\n## {alert}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_an_alert_leads_to_its_runbook(rule: dict[str, Any]) -> None:
    path, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert (path, anchor) == (PAGE, rule["alert"].lower())
    assert anchor in anchors(path)


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_a_runbook_says_what_it_means_what_users_see_where_to_look_and_what_to_do(rule: dict[str, Any]) -> None:
    said = re.findall(r"^\*\*([\w ]+)\.\*\* \S", runbook(rule["alert"]), re.MULTILINE)
    looks = re.findall(r"^\*\*Look\.\*\*", runbook(rule["alert"]), re.MULTILINE)
    assert [*said, *["Look"] * ("Look" not in said and bool(looks))].count("Look") == 1
    assert {"Means", "Users see", "Do"} <= set(said)


def test_each_runbook_has_its_alert() -> None:
    headings = re.findall(r"^## (\w+)$", text_of(PAGE), re.MULTILINE)
    assert headings == [rule["alert"] for rule in alerts()]
