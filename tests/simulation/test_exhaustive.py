"""Every order of steps of the small scopes is right, and a broken rule is met by one of them."""

from __future__ import annotations

import pytest

from tests.mutations.rules import RULES
from tests.simulation.breaking import broken
from tests.simulation.exhaustive import ABORTED_WRITER, DYING_WRITER, GUARDED_WRITER, OLD_WRITER, SCOPES, explore

SOUND_RUNS_MAX = 500
"""Of the larger scopes a part; the command explores them to the end."""
BROKEN_RUNS_MAX = 4_000
"""A broken rule is met within so many."""

MET = [
    (DYING_WRITER, "a commit below the largest fence counts"),
    (DYING_WRITER, "a rejected fence is taken for a placed one"),
    (DYING_WRITER, "a reader does not fence a writer of an older epoch"),
    (DYING_WRITER, "no fence is ever placed"),
    (ABORTED_WRITER, "a commit of an older epoch's transaction is acknowledged without being read back"),
    (ABORTED_WRITER, "a commit that is not durable yet is told to whoever asks"),
    (ABORTED_WRITER, "an abort does not stop a later commit"),
    (ABORTED_WRITER, "an abort fences below infinity"),
    (OLD_WRITER, "a begin is not bounded by the durable watermark"),
    (OLD_WRITER, "a new epoch judges snapshots from before it"),
    (GUARDED_WRITER, "what is guarded does not travel with the commit"),
]


def test_a_scope_is_explored_to_its_end() -> None:
    found = explore(DYING_WRITER)
    assert not found.anomalies
    assert found.states > 500
    assert found.ends > 100


@pytest.mark.parametrize("scope", sorted(SCOPES))
def test_the_promises_hold_in_the_first_orders_of_every_scope(scope: str) -> None:
    found = explore(scope, runs_max=SOUND_RUNS_MAX)
    assert not found.anomalies, "\n".join([*found.story, *found.anomalies])


@pytest.mark.parametrize(("scope", "name"), MET)
def test_a_broken_rule_is_met(scope: str, name: str) -> None:
    mutation = next(mutation for mutation in RULES if mutation.name == name)
    with broken(mutation):
        found = explore(scope, runs_max=BROKEN_RUNS_MAX)
    assert found.anomalies, f"{found.runs} runs did not meet that {name}"
    assert found.story
