"""Who comes next in a line that is fair to parties."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from client.asyncio_front.fair_line import FairLine


def test_who_asks_for_much_waits_behind_himself() -> None:
    line: FairLine[str] = FairLine(2)
    assert [line.take("much") for _ in range(3)] == [True, True, False]
    for waiter in ("much 1", "much 2"):
        line.wait("much", waiter)
    line.wait("little", "little 1")
    line.wait("late", "late 1")
    order = [line.give_back(party) for party in ("much", "much", "little", "late", "much")]
    assert order == [("little", "little 1"), ("late", "late 1"), ("much", "much 1"), ("much", "much 2"), None]


def test_of_parties_that_have_as_many_the_one_that_got_its_last_place_longest_ago_is_next() -> None:
    line: FairLine[int] = FairLine(1)
    assert line.take("much")
    for number in range(3):
        line.wait("much", number)
    line.wait("little", 3)
    assert [line.give_back(party) for party in ("much", "little")] == [("little", 3), ("much", 0)]
    line.wait("little", 4)
    order = [line.give_back(party) for party in ("much", "little", "much", "much")]
    assert order == [("little", 4), ("much", 1), ("much", 2), None]


def test_parties_that_have_gone_are_not_kept() -> None:
    line: FairLine[int] = FairLine(1)
    assert line.take("first")
    line.wait("second", 2)
    line.wait("third", 3)
    line.leave("third", 3)
    assert line.give_back("first") == ("second", 2)
    assert line.give_back("second") is None
    assert not line._parties


def test_who_has_left_is_not_named() -> None:
    line: FairLine[int] = FairLine(1)
    assert line.take("")
    line.wait("", 0)
    line.wait("", 1)
    for _ in range(2):
        line.leave("", 0)
    assert line.give_back("") == ("", 1)
    assert line.give_back("") is None
    assert line.take("")


@given(st.integers(1, 3), st.lists(st.tuples(st.sampled_from(["ask", "end", "leave"]), st.integers(0, 99))))
def test_no_place_is_lost_or_given_twice_and_none_is_free_while_somebody_waits(
    places: int, steps: list[tuple[str, int]]
) -> None:
    line: FairLine[int] = FairLine(places)
    held: list[str] = []
    waiting: list[tuple[str, int]] = []
    for number, (step, chosen) in enumerate(steps):
        party = "abc"[chosen % 3]
        if step == "ask":
            if line.take(party):
                assert not waiting
                held.append(party)
            else:
                line.wait(party, number)
                waiting.append((party, number))
        elif step == "leave" and waiting:
            line.leave(*waiting.pop(chosen % len(waiting)))
        elif step == "end" and held:
            following = line.give_back(held.pop(chosen % len(held)))
            assert (following is None) == (not waiting)
            if following is not None:
                has = Counter(held)
                assert has[following[0]] == min(has[each] for each, _ in waiting)
                assert following == next(each for each in waiting if each[0] == following[0])
                waiting.remove(following)
                held.append(following[0])
        assert len(held) <= places
        assert not waiting or len(held) == places
