from __future__ import annotations

import threading

import pytest

from demo.errors import Overdue
from demo.waiting import wait_for


def test_what_comes_in_the_end_is_found() -> None:
    looks = iter([None, None, "it"])
    assert wait_for(lambda: next(looks), "it", 60, threading.Event()) == "it"


def test_something_false_is_something() -> None:
    assert wait_for(lambda: 0, "a number", 0, threading.Event()) == 0


def test_a_wait_ends_at_its_limit_and_says_for_what_it_was() -> None:
    with pytest.raises(Overdue, match="a new primary was waited for, and did not come within 0 s"):
        wait_for(lambda: None, "a new primary", 0, threading.Event())


def test_a_wait_ends_with_the_demo() -> None:
    stopping = threading.Event()
    stopping.set()
    with pytest.raises(Overdue, match="a new primary was waited for until the demo ended"):
        wait_for(lambda: None, "a new primary", 60, stopping)
