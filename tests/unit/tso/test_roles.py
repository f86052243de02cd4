"""The roles' thread: in which order it does things. The candidate and the serving side are fakes that keep a story."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from lease import (
    CoordinatorRefused,
    Holding,
    LeaseRecord,
    LeaseSettings,
    LevelRefused,
    RecordInvalid,
    StandBy,
    Superseded,
    Tenure,
)
from store import StoreUnavailable
from tso.roles import Progress, RoleKeeper

SETTINGS = LeaseSettings(lease_ms=100)
WAIT_S = 20.0


class FakeTenure(Tenure):
    """Renews as often as it is told to."""

    epoch = 1000
    ceiling = 2000

    def __init__(self, story: list[str], renewals: int) -> None:
        self.story = story
        self.renewals = renewals

    def renew(self, *, reached: int = 0, durable: int = 0) -> bool:
        self.story.append(f"renew, reached {reached}, durable {durable}")
        self.renewals -= 1
        return self.renewals >= 0

    def release(self) -> None:
        self.story.append("release")


class FakeCandidate:
    """Gives the answers of a list, then stops the keeper."""

    def __init__(self, story: list[str], *answers: Tenure | StandBy | Exception) -> None:
        self.story = story
        self.answers = list(answers)
        self.when_done: Callable[[], None] = lambda: None

    def join(self, role: str) -> None:
        self.story.append(f"join {role}")

    def attempt(self) -> Tenure | StandBy:
        if not self.answers:
            self.when_done()
            return StandBy(None, 0)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def wait(self, wait_ms: float) -> None:
        self.story.append(f"wait {wait_ms:.0f}")

    def wake(self) -> None:
        pass


class FakeFront:
    """Writes down what it is told; ends at once by itself if told so."""

    def __init__(
        self, story: list[str], *, ends_at_once: bool = False, breaks: bool = False, silent_ms: float = 0.0
    ) -> None:
        self.story = story
        self.silent_ms = silent_ms
        self.ends_at_once = ends_at_once
        self.breaks = breaks
        self.hindrances = [""]
        """One after the other."""
        self.when_serving: Callable[[], None] = lambda: None

    def stand_by(self, primary: LeaseRecord | None, seen_ms: float | None) -> None:
        self.story.append(f"stand by, primary {None if primary is None else primary.holder}")

    def hindered(self, hindrance: str) -> None:
        if hindrance != self.hindrances[-1]:
            self.hindrances.append(hindrance)

    def serve(self, tenure: Holding, ended: Callable[[str], None]) -> None:
        self.story.append(f"serve {tenure.epoch}")
        self.when_serving()
        if self.breaks:
            raise ZeroDivisionError
        if self.ends_at_once:
            ended("HBase refuses writes")

    def stop_serving(self) -> None:
        self.story.append("stop serving")

    def progress(self) -> Progress:
        return Progress(reached=1500, durable=1400, silent_ms=self.silent_ms)


class Stopping(threading.Event):
    """Nobody waits for it, but how long they would is kept."""

    def __init__(self, story: list[str]) -> None:
        super().__init__()
        self.story = story

    def wait(self, timeout: float | None = None) -> bool:
        self.story.append(f"pause {1000 * (timeout or 0):.0f}")
        return self.is_set()


def tell(story: list[str], front: FakeFront, *answers: Tenure | StandBy | Exception) -> list[str]:
    """Run a keeper until its candidate has no more answers; returns the story."""
    candidate = FakeCandidate(story, *answers)
    keeper = RoleKeeper(candidate, SETTINGS, front, warm_up=lambda: story.append("warm up"), find_primary=lambda: None)
    candidate.when_done = keeper.stop
    thread = threading.Thread(target=keeper.run)
    thread.start()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    return story


def test_serving_ends_before_the_lease_is_released_when_it_is_lost() -> None:
    story: list[str] = []
    told = tell(story, FakeFront(story), FakeTenure(story, renewals=1))
    assert told[:9] == [
        "join standby",
        "stand by, primary None",
        "warm up",
        "serve 1000",
        "join primary",
        "renew, reached 1500, durable 1400",
        "renew, reached 1500, durable 1400",
        "stop serving",
        "release",
    ]


@pytest.mark.parametrize(("silent_ms", "renewals"), [(SETTINGS.lease_ms, 2), (SETTINGS.lease_ms + 1, 0)])
def test_the_lease_of_a_front_that_hangs_is_not_renewed(silent_ms: float, renewals: int) -> None:
    story: list[str] = []
    told = tell(story, FakeFront(story, silent_ms=silent_ms), FakeTenure(story, renewals=1))
    assert sum(line.startswith("renew") for line in told) == renewals
    assert told.index("stop serving") < told.index("release")


def test_a_keeper_that_steps_aside_tells_it_once_the_lease_is_free_and_leaves_it_to_others_for_a_while() -> None:
    story: list[str] = []
    front = FakeFront(story)
    candidate = FakeCandidate(story, FakeTenure(story, renewals=10**6))
    keeper = RoleKeeper(candidate, SETTINGS, front, warm_up=lambda: None, find_primary=lambda: None)
    candidate.when_done = keeper.stop

    def asked_by_two() -> None:
        for _ in range(2):
            keeper.step_aside(1000, lambda: story.append("told"))

    front.when_serving = asked_by_two
    thread = threading.Thread(target=keeper.run)
    thread.start()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert story.index("stop serving") < story.index("release") < story.index("told")
    assert story.count("told") == 2, "one of the two who asked waits for ever"


def test_stepping_aside_from_an_epoch_that_has_ended_is_told_at_once() -> None:
    keeper = RoleKeeper(FakeCandidate([]), SETTINGS, FakeFront([]), warm_up=lambda: None, find_primary=lambda: None)
    told: list[str] = []
    keeper.step_aside(1000, lambda: told.append("told"))
    assert told == ["told"]


def test_the_lease_is_given_back_although_the_front_breaks_as_it_stops() -> None:
    story: list[str] = []
    front = FakeFront(story, ends_at_once=True)

    def break_down() -> None:
        raise ZeroDivisionError

    front.stop_serving = break_down  # type: ignore[method-assign]
    candidate = FakeCandidate(story, FakeTenure(story, renewals=1))
    keeper = RoleKeeper(candidate, SETTINGS, front, warm_up=lambda: None, find_primary=lambda: None)
    with pytest.raises(ZeroDivisionError):
        keeper.run()
    assert story[-1] == "release"


def test_a_pipeline_that_stops_by_itself_gives_the_lease_back_and_the_store_is_looked_at_again() -> None:
    story: list[str] = []
    told = tell(story, FakeFront(story, ends_at_once=True), FakeTenure(story, renewals=10**6))
    assert told[4:9] == ["join primary", "stop serving", "release", "join standby", "stand by, primary None"]
    assert told[9:11] == ["stand by, primary None", "warm up"]
    assert "renew, reached 1500, durable 1400" not in told


def test_tenures_that_end_by_themselves_are_followed_by_pauses_that_grow_and_are_bounded() -> None:
    story: list[str] = []
    front = FakeFront(story)
    lasting = FakeTenure(story, renewals=SETTINGS.renewals_per_lease)
    candidate = FakeCandidate(story, *[FakeTenure(story, renewals=10**6) for _ in range(4)], lasting)
    keeper = RoleKeeper(candidate, SETTINGS, front, warm_up=lambda: None, find_primary=lambda: None)
    keeper._stopping = Stopping(story)
    candidate.when_done = keeper.stop
    front.when_serving = lambda: setattr(front, "ends_at_once", story.count("serve 1000") < 5)
    keeper.run()
    tenures = "|".join(story).split("serve 1000")[1:]
    assert [tenure.count("pause 100") for tenure in tenures] == [1, 2, 4, 4, 1]
    assert [tenure.count("stand by") for tenure in tenures[:4]] == [2, 3, 5, 5], "clients are not told who is primary"
    assert all(tenure.index("release") < tenure.index("pause") for tenure in tenures), "it pauses while it holds"


def story_of_warming_up(*failures: Exception, front: FakeFront | None = None) -> list[str]:
    """What a standby does that fails to warm up so often, and is then told to stop."""
    story: list[str] = []
    remaining = list(failures)

    def warm_up() -> None:
        story.append("warm up")
        if remaining:
            raise remaining.pop()

    candidate = FakeCandidate(story)
    keeper = RoleKeeper(candidate, SETTINGS, front or FakeFront(story), warm_up=warm_up, find_primary=lambda: None)
    candidate.when_done = keeper.stop
    keeper.run()
    return story


@pytest.mark.parametrize("refusal", [CoordinatorRefused("no permission"), RecordInvalid("rubbish")])
def test_a_coordinator_that_refuses_while_a_standby_warms_up_does_not_end_it(refusal: Exception) -> None:
    story = story_of_warming_up(refusal)
    assert story.count("warm up") == 2
    assert story.index("wait 250") < len(story) - 1 - story[::-1].index("warm up")


def test_a_standby_that_waits_for_the_store_joins_anew_whenever_its_session_has_ended() -> None:
    story = story_of_warming_up(*[StoreUnavailable("the gateway is gone")] * 2)
    tries = "|".join(story).split("warm up")[1:]
    assert ["join standby" in each for each in tries] == [True, True, False]


def test_a_level_that_is_refused_ends_the_standby() -> None:
    def warm_up() -> None:
        raise LevelRefused("upgrade this program")

    keeper = RoleKeeper(FakeCandidate([]), SETTINGS, FakeFront([]), warm_up=warm_up, find_primary=lambda: None)
    with pytest.raises(LevelRefused):
        keeper.run()


def test_a_process_that_may_not_serve_ends() -> None:
    story: list[str] = []
    candidate = FakeCandidate(story, Superseded("another is at h:1"))
    keeper = RoleKeeper(candidate, SETTINGS, FakeFront(story), warm_up=lambda: None, find_primary=lambda: None)
    with pytest.raises(Superseded, match="another is at h:1"):
        keeper.run()
    assert "serve 1000" not in story


def test_a_front_that_cannot_serve_gives_the_lease_back_and_ends_the_thread() -> None:
    story: list[str] = []
    candidate = FakeCandidate(story, FakeTenure(story, renewals=0))
    keeper = RoleKeeper(
        candidate,
        SETTINGS,
        FakeFront(story, breaks=True),
        warm_up=lambda: None,
        find_primary=lambda: None,
    )
    with pytest.raises(ZeroDivisionError):
        keeper.run()
    assert story[-2:] == ["stop serving", "release"]


def test_a_standby_tells_who_is_primary_and_waits_as_long_as_the_rules_say() -> None:
    story: list[str] = []
    primary = LeaseRecord("other", "n", ("h:1",), 5, False, 1000)
    told = tell(story, FakeFront(story), StandBy(primary, 70), RecordInvalid("rubbish"))
    assert told[3:7] == ["stand by, primary other", "wait 70", "stand by, primary None", "wait 100"]


def test_what_keeps_a_standby_from_the_lease_is_told_until_it_no_longer_does() -> None:
    story: list[str] = []
    primary = LeaseRecord("other", "n", ("h:1",), 5, False, 1000)
    front = FakeFront(story)
    silent = StandBy(None, 70, "ZooKeeper is silent")
    tell(story, front, RecordInvalid("rubbish"), StandBy(primary, 70), silent, FakeTenure(story, renewals=1))
    assert front.hindrances == [
        "",
        "cannot try for the lease: rubbish",
        "",
        "cannot try for the lease: ZooKeeper is silent",
        "",
        "leaves the lease to others for 100 ms: it served, and the lease is lost",
        "",
    ]


def test_why_a_tenure_ended_by_itself_is_told_while_others_may_follow() -> None:
    story: list[str] = []
    ending = FakeFront(story, ends_at_once=True)
    tell(story, ending, FakeTenure(story, renewals=10**6))
    assert ending.hindrances[1] == "leaves the lease to others for 100 ms: it served, and HBase refuses writes"
    hanging = FakeFront(story, silent_ms=SETTINGS.lease_ms + 1)
    tell(story, hanging, FakeTenure(story, renewals=1))
    assert hanging.hindrances[1].endswith(f"it served, and its event loop had not run for {SETTINGS.lease_ms + 1} ms")


def test_whoever_was_asked_to_step_aside_is_kept_from_nothing() -> None:
    story: list[str] = []
    front = FakeFront(story, ends_at_once=True)
    candidate = FakeCandidate(story, FakeTenure(story, renewals=1), FakeTenure(story, renewals=10**6))
    keeper = RoleKeeper(candidate, SETTINGS, front, warm_up=lambda: None, find_primary=lambda: None)
    candidate.when_done = keeper.stop

    def asked_the_second_time() -> None:
        if story.count("serve 1000") == 2:
            front.ends_at_once = False
            keeper.step_aside(1000, lambda: None)

    front.when_serving = asked_the_second_time
    keeper.run()
    assert [hindrance for hindrance in front.hindrances if hindrance] == [
        "leaves the lease to others for 100 ms: it served, and HBase refuses writes"
    ], "it was asked, and did not end by itself"


@pytest.mark.parametrize(
    ("failure", "hindrance"),
    [
        (StoreUnavailable("the gateway is gone"), "the commit table cannot be used: the gateway is gone"),
        (CoordinatorRefused("no permission"), "the level cannot be read: no permission"),
    ],
)
def test_what_keeps_a_standby_from_warming_up_is_told_until_it_is_warm(failure: Exception, hindrance: str) -> None:
    story: list[str] = []
    front = FakeFront(story)
    story_of_warming_up(failure, front=front)
    assert front.hindrances == ["", hindrance, ""]


def test_a_keeper_that_was_stopped_before_it_ran_serves_not_at_all() -> None:
    story: list[str] = []
    keeper = RoleKeeper(
        FakeCandidate(story),
        SETTINGS,
        FakeFront(story),
        warm_up=lambda: None,
        find_primary=lambda: None,
    )
    keeper.stop()
    keeper.run()
    assert story == ["join standby"]
