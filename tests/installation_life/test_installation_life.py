"""Random lives are as the model says, and a rule that is broken is noticed by one of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from client.bulk_writes.writing import AttemptWriter
from client.transactions.guarded_cells import GuardedCells
from client.transactions.guards import Guards
from client.transactions.revalidation import Revalidator
from client.transactions.savepoints import Savepoints
from client.vacuum import run
from rest import table_routes
from rest.reads import read_all
from tests.examples import examples
from tests.installation_life.running import live

pytestmark = pytest.mark.takes_minutes

SEEDS = 8
SEEDS_TO_NOTICE_MAX = 60


@pytest.mark.parametrize("seed", range(examples(SEEDS)))
def test_a_life_is_as_the_model_says(seed: int) -> None:
    lived = live(seed)
    assert lived.wrong is None, "\n".join([*lived.story, lived.wrong])


def test_lives_meet_what_they_are_for() -> None:
    """Else nothing above would be tested: what few of them meet, some of these do."""
    met = sum((live(seed).counted for seed in range(100, 103)), start=live(99).counted)
    kinds = {"commits", "commits by REST", "Conflict", "TableFenced"}
    assert +met >= Counter({*kinds, "amid others", "vacuums", "vacuums killed", "failovers"})


@pytest.mark.parametrize(
    ("owner", "name", "broken"),
    [
        (Revalidator, "look_for_conflicts", lambda self, handle, compared, among, tables, begun, deadline: begun[2]),
        (Guards, "keys", lambda self, tables: []),
        (GuardedCells, "keys", lambda self: set()),
        (AttemptWriter, "_require_wanted", lambda self: None),
        (Savepoints, "roll_back_to", lambda self, savepoint: None),
        (run, "held_back", lambda wanted, named: wanted),
        (table_routes, "read_and_guard", read_all),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", None),
)
def test_a_broken_rule_is_noticed(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, broken: Any) -> None:
    monkeypatch.setattr(owner, name, broken)
    assert any(live(seed).wrong for seed in range(SEEDS_TO_NOTICE_MAX))
