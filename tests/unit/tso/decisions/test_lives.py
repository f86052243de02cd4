"""How long transactions live, and the horizon below which nobody reads."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tso.decisions.lives import Lives
from wire import Life

LIFE_MS = 1_000.0


def test_a_young_transaction_lives_without_being_remembered() -> None:
    lives = Lives(LIFE_MS, beating_max=10)
    lives.sample(last_timestamp=100, snapshot=100, now_ms=0)
    assert lives.is_alive(101, LIFE_MS * 0.9)
    assert len(lives) == 0


def test_one_that_nothing_is_heard_of_is_given_up_for_good() -> None:
    lives = Lives(LIFE_MS, beating_max=10)
    lives.sample(last_timestamp=100, snapshot=100, now_ms=0)
    assert lives.is_alive(100, LIFE_MS - 1)
    assert not lives.is_alive(100, LIFE_MS)
    assert not lives.beat(100, 90, LIFE_MS)
    assert not lives.is_alive(100, LIFE_MS)


def test_to_ask_for_a_life_changes_nothing() -> None:
    lives = Lives(LIFE_MS, beating_max=10)
    lives.sample(last_timestamp=100, snapshot=100, now_ms=0)
    assert lives.life(101, LIFE_MS * 0.9) is Life.YOUNG
    assert lives.beat(100, 90, LIFE_MS / 2)
    for now_ms in (LIFE_MS, LIFE_MS * 1.4):
        assert lives.life(100, now_ms) is Life.HEARD_OF
    assert lives.life(100, LIFE_MS * 1.5) is Life.GIVEN_UP
    assert lives.life(99, LIFE_MS) is Life.GIVEN_UP


def test_a_heartbeat_lets_it_live_for_another_life_and_hold_the_horizon() -> None:
    lives = Lives(LIFE_MS, beating_max=10)
    for step in range(40):
        now_ms = step * LIFE_MS / 10
        lives.sample(last_timestamp=100 + step, snapshot=100 + step, now_ms=now_ms)
        if step < 20:
            assert lives.beat(100, 99, now_ms)
        assert lives.is_alive(100, now_ms) == (step < 29)
        if 10 <= step < 29:
            assert lives.horizon(now_ms) == 99
    assert lives.horizon(3.9 * LIFE_MS) > 99


def test_whoever_names_a_later_snapshot_lifts_no_horizon_above_what_is_read() -> None:
    lives = Lives(LIFE_MS, beating_max=10)
    lives.sample(last_timestamp=100, snapshot=100, now_ms=0)
    assert lives.beat(100, 90, 0)
    assert lives.beat(100, 99, 1)
    lives.sample(last_timestamp=200, snapshot=200, now_ms=LIFE_MS / 2)
    assert lives.horizon(LIFE_MS) == 90


def test_nothing_is_known_of_the_horizon_in_the_first_life_of_an_epoch() -> None:
    lives = Lives(LIFE_MS, beating_max=10)
    lives.sample(last_timestamp=100, snapshot=100, now_ms=0)
    assert lives.horizon(LIFE_MS - 1) == 0
    assert lives.is_alive(1, LIFE_MS - 1), "it may have begun in an older epoch, and its heartbeat be on the way"
    assert lives.horizon(LIFE_MS) == 100


def test_there_is_a_limit_to_what_is_remembered_until_lives_end() -> None:
    lives = Lives(LIFE_MS, beating_max=2)
    lives.sample(last_timestamp=100, snapshot=100, now_ms=0)
    assert lives.has_room([1, 2], 0)
    assert lives.beat(1, 1, 0)
    assert lives.beat(2, 1, 0)
    assert not lives.has_room([3], LIFE_MS - 1)
    assert lives.has_room([1, 2], LIFE_MS - 1), "those are remembered already"
    lives.end(1)
    assert lives.has_room([3], LIFE_MS - 1)
    assert lives.has_room([3, 4], LIFE_MS)


class LivesMachine(RuleBasedStateMachine):
    """Transactions begin, beat or fall silent while time passes; compared with one record for each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0.0
        self.last = 1_000
        self.lives = Lives(LIFE_MS, beating_max=10**6)
        self.heard_ms: dict[int, float] = {}
        self.snapshots: dict[int, int] = {}
        self.given_up: set[int] = set()
        self.horizon = 0
        self.lives.sample(self.last, self.last, self.now_ms)

    @rule(lag=st.integers(0, 3))
    def begin(self, lag: int) -> None:
        self.lives.sample(self.last, self.last, self.now_ms)
        self.last += 1 + lag
        self.heard_ms[self.last] = self.now_ms
        self.snapshots[self.last] = self.last - 1 - lag

    @rule(share=st.floats(0.01, 0.6))
    def wait(self, share: float) -> None:
        self.now_ms += share * LIFE_MS
        self.lives.sample(self.last, self.last, self.now_ms)

    @precondition(lambda self: self.heard_ms)
    @rule(data=st.data())
    def beat(self, data: st.DataObject) -> None:
        start = data.draw(st.sampled_from(sorted(self.heard_ms)))
        if self.lives.beat(start, self.snapshots[start], self.now_ms):
            assert start not in self.given_up, "what was given up came back"
            self.heard_ms[start] = self.now_ms
        else:
            self.given_up.add(start)

    @invariant()
    def what_was_heard_of_within_a_life_lives(self) -> None:
        for start, heard_ms in self.heard_ms.items():
            if self.now_ms - heard_ms < LIFE_MS and start not in self.given_up:
                assert self.lives.is_alive(start, self.now_ms)

    @invariant()
    def the_horizon_is_below_the_living_and_never_goes_back(self) -> None:
        horizon = self.lives.horizon(self.now_ms)
        assert horizon >= self.horizon
        self.horizon = horizon
        for start, snapshot in self.snapshots.items():
            assert snapshot >= horizon or not self.lives.is_alive(start, self.now_ms)


TestLivesMachine = LivesMachine.TestCase
