from __future__ import annotations

import pytest

from demo.flights import read_reference
from demo.oracles import TO_BE_KILLED, epoch_now, epochs_in
from demo.tables import REFERENCE_KEYS

LOG = """\
serving on 127.0.0.1:4711 as standby
2026-11-21 13:36:03,847 INFO lease_0 tso.roles: epoch 17: primary, timestamps up to 99
primary, epoch 17
"""


@pytest.mark.parametrize(
    ("log", "now", "all_of_them"),
    [
        ("", None, []),
        ("serving on 127.0.0.1:4711 as standby\n", None, []),
        (LOG, 17, [17]),
        (LOG + "standby\n", None, [17]),
        (LOG + "standby\nprimary, epoch 23\n", 23, [17, 23]),
        (LOG + "primary, epoch 2", 17, [17]),  # a line that is not whole yet
    ],
)
def test_the_role_of_an_oracle_is_what_it_said_last(log: str, now: int | None, all_of_them: list[int]) -> None:
    assert epoch_now(log) == now
    assert epochs_in(log) == all_of_them


def test_the_small_conflict_map_takes_the_largest_transaction_and_not_two() -> None:
    limits = dict(limit.split("=") for limit in TO_BE_KILLED.limits)
    entries, share = int(limits["conflict_map_entries_max"]), float(limits["commit_share_max"])
    rows = sum(len(read_reference(name)) for name in REFERENCE_KEYS)
    assert rows < entries * share - 1
    assert entries < 2 * rows
