"""The console's page alone, in a real browser: whatever it is answered, it never tells more than it knows.

There is no oracle: the test serves the page's files and all answers, and moves the page's clock. Beside real oracles
the page is looked at in tests/integration/test_console.py.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from rest.console_routes import HEADERS, PAGE, console_files
from rest.installation_models import (
    HandedOver,
    InstallationMetrics,
    InstallationState,
    LeaseClock,
    MemberState,
    TenureState,
)
from rest.problems import KINDS
from tests.console.browser import headless_or_skipped

WAIT_MS = 10_000
LOADED_AGAIN_AFTER_MS = 2_000
LOADS_MS_MAX = 60_000
STEP_MS = 100
STEPS_MAX = 600
NOW_MS = 1_700_000_000_000
OWN, OTHER = "own.invalid:5481", "other.invalid:5481"
INSTALLATION, METRICS, HAND_OVER = "/v1/installation", "/v1/installation/metrics", "/v1/installation/hand-over"


browser = pytest.fixture(scope="module")(headless_or_skipped)


def state(**changes: Any) -> dict[str, Any]:
    common: dict[str, Any] = {"warm": True, "connections": 1, "problem": "", "hindrance": ""}
    members = [
        MemberState(holder="a", address="a:1", rest=OWN, role="primary", own=True, **common),
        MemberState(holder="b", address="b:1", rest=OTHER, role="standby", own=False, **common),
    ]
    tenures = [
        TenureState(
            epoch=str(number),
            holder="a",
            address="a:1",
            rest=OWN,
            since_ms=NOW_MS - 60_000 * (8 - number),
            cause="handed over",
            outage_ms=5,
            at_least=False,
        )
        for number in range(1, 8)
    ]
    told = InstallationState(
        root="/pythia",
        elected=True,
        now_ms=NOW_MS,
        primary="a",
        epoch="7",
        lease=LeaseClock(told_by="a", lease_ms=2_000, remaining_ms=1_500),
        members=members,
        horizon=None,
        transactions=[],
        transaction_life_ms=60_000,
        history=tenures,
        problems=[],
    )
    return told.model_dump(mode="json") | changes


def problem(code: str, detail: str) -> dict[str, Any]:
    return {"code": code, "status": KINDS[code].status, "title": KINDS[code].title, "detail": detail}


class Faked:
    """The page, and what it is answered by path: ``None`` hangs, an ``OSError`` hangs up."""

    def __init__(self, page: Page) -> None:
        self.page = page
        metrics = InstallationMetrics(process="a", monotonic_ms=1, samples={}).model_dump(mode="json")
        self.answers: dict[str, dict[str, Any] | OSError | None] = {INSTALLATION: state(), METRICS: metrics}
        self.asked: list[str] = []
        self.cut: dict[str, int] = {}
        """A part of the page by name, and how often it does not come."""
        self.page_requests = 0
        """By whoever opens the page, and by the page, which asks before it is loaded again."""
        self.hanging: list[Route] = []
        page.set_default_timeout(WAIT_MS)
        page.route("**/*", self._answer)

    def open(self, fragment: str = "") -> None:
        """Show who serves; from then on the page's time stands still."""
        self.page.clock.install(time=NOW_MS / 1000)
        self.page.goto(f"http://{OWN}/console{fragment}")
        self.shows("state-text", "Serving")
        self.page.clock.pause_at(self.page.evaluate("() => Date.now()") / 1000 + 1)

    def shows(self, id: str, text: str) -> None:
        expect(self.page.locator(f"#{id}")).to_contain_text(text, timeout=WAIT_MS)

    def ask_again(self, times: int = 1) -> None:
        """Let the page's time pass until it has asked so often: a second after each answer it asks again."""
        before = self.asked.count(INSTALLATION)
        for _ in range(STEPS_MAX):
            if self.asked.count(INSTALLATION) == before + times:
                return
            self.page.clock.run_for(STEP_MS)
        raise AssertionError(f"it asked {self.asked.count(INSTALLATION) - before} times")

    def hand_over(self) -> None:
        self.page.locator("#hand-over").click()
        self.shows("dialog-title", "Hand over?")
        self.page.locator("#dialog-do").click()

    def _answer(self, route: Route) -> None:
        url = urlsplit(route.request.url)
        if url.netloc != OWN:
            route.fulfill(content_type="text/html", body="another")
        elif url.path.startswith("/v1/"):
            self._answer_question(route, url.path)
        else:
            self._answer_part(route, url.path.removeprefix("/console").lstrip("/") or PAGE)

    def _answer_part(self, route: Route, name: str) -> None:
        self.page_requests += name == PAGE
        if self.cut.get(name):
            self.cut[name] -= 1
            route.abort()
        else:
            route.fulfill(body=console_files()[name], headers={**HEADERS, "Content-Type": media_type(name)})

    def _answer_question(self, route: Route, path: str) -> None:
        self.asked.append(path)
        answer = self.answers[path]
        if answer is None:
            self.hanging.append(route)
        elif isinstance(answer, OSError):
            route.abort()
        else:
            route.fulfill(status=answer.get("status", 200), json=answer)


def media_type(name: str) -> str:
    found = mimetypes.guess_type(name)[0]
    assert found is not None, name
    return found


@pytest.fixture
def faked(browser: Browser) -> Iterator[Faked]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    yield Faked(page)
    page.close()


def test_what_was_refused_or_could_not_be_shown_is_not_shown_as_of_now(faked: Faked) -> None:
    page = faked.page
    faked.open("#tried=%")
    expect(page).to_have_title("● Pythia /pythia")
    not_of_now: list[tuple[dict[str, Any], str, str]] = [
        (problem("overloaded", "too many requests"), "Refused", "too many requests"),
        (state(members=None), "Not shown", "This page could not show what it was told"),
    ]
    for answer, word, why in not_of_now:
        faked.answers[INSTALLATION] = answer
        faked.ask_again(4)
        faked.shows("state-text", word)
        faked.shows("problems", why)
        faked.shows("seen", "as of")
        expect(page).to_have_title("◌ Pythia /pythia")
        expect(page.locator("#main")).to_have_attribute("data-stale", "")
        expect(page.locator("#lease-left")).to_have_text("–")
        expect(page.locator("#lease-meter")).to_have_attribute("aria-valuetext", "not known")
        expect(page.locator("#lease-meter")).to_have_attribute("aria-valuenow", "0")
        expect(page.locator("#hand-over")).to_be_disabled()
        expect(page.locator("#gone")).to_be_hidden()
    page.locator("#tenures-all").click()
    expect(page.locator("#tenures tr")).to_have_count(7)
    faked.answers[INSTALLATION] = state(problems=["said twice", "said twice"])
    faked.ask_again()
    faked.shows("state-text", "Serving")
    expect(page.locator("#problems li")).to_have_count(2)
    faked.answers[INSTALLATION] = state()
    faked.ask_again()
    expect(page.locator("#problems li")).to_have_count(0)


def test_what_keeps_a_standby_from_taking_over_stands_beside_it_for_as_long_as_it_does(faked: Faked) -> None:
    faked.open()
    members, reason = state()["members"], "the commit table cannot be used: no gateway"
    faked.answers[INSTALLATION] = state(members=[members[0], {**members[1], "hindrance": reason}])
    faked.ask_again()
    faked.shows("members", f"b:1{reason}")
    faked.answers[INSTALLATION] = state()
    faked.ask_again()
    expect(faked.page.locator("#members")).not_to_contain_text("cannot be used", timeout=WAIT_MS)


def test_a_hand_over_of_unknown_end_is_told_as_that_and_never_asked_for_twice(faked: Faked) -> None:
    page = faked.page
    faked.open()
    for unknown in (problem("hand-over-uncertain", "nobody took it"), problem("internal", "a fault"), OSError()):
        faked.answers[HAND_OVER] = unknown
        faked.hand_over()
        faked.shows("dialog-title", "Not known whether it was handed over")
        faked.shows("dialog-text", "before you ask again")
        expect(page.locator("#dialog-do")).to_be_hidden()
        page.keyboard.press("Escape")
    faked.answers[HAND_OVER] = None
    faked.asked.clear()
    faked.hand_over()
    faked.shows("dialog-result", "Handing over…")
    page.keyboard.press("Escape")
    page.locator("#hand-over").click()
    faked.shows("dialog-result", "Handing over…")
    expect(page.locator("#dialog-do")).to_be_disabled()
    page.keyboard.press("Escape")
    done = HandedOver(from_holder="a", to_holder="b", from_epoch="7", to_epoch="8", took_ms=12.0)
    (hanging,) = faked.hanging
    hanging.fulfill(body=done.model_dump_json())
    page.locator("#hand-over").click()
    faked.shows("dialog-title", "Handed over")
    faked.shows("dialog-text", "a gave the lease to b")
    page.keyboard.press("Escape")
    assert faked.asked.count(HAND_OVER) == 1
    for refused in (problem("cannot-hand-over", "no standby answers"), problem("role-missing", "it takes operate")):
        faked.answers[HAND_OVER] = refused
        faked.hand_over()
        faked.shows("dialog-title", "Not handed over")
        faked.shows("dialog-problem", refused["detail"])
        page.keyboard.press("Escape")


def test_silence_is_measured_in_seconds_and_a_sleep_is_none(faked: Faked) -> None:
    page = faked.page
    faked.open()
    faked.answers[INSTALLATION] = None
    faked.ask_again()
    page.clock.fast_forward(3_600_000)
    expect(page.locator("#gone")).to_be_hidden()
    page.clock.run_for(3_000)
    expect(page.locator("#gone")).to_be_visible()
    faked.shows("gone-text", "Going to the page of b in")
    faked.shows("state-text", "No answer")
    expect(page).to_have_title("◌ Pythia /pythia")
    expect(page.locator("#main")).to_have_attribute("data-stale", "")
    page.clock.run_for(6_000)
    page.wait_for_url(f"http://{OTHER}/console#tried={OWN.replace(':', '%3A')}")


_WHOLE = """() => document.body !== null && getComputedStyle(document.body).maxWidth === "1240px"
  && document.title.startsWith("●") && sessionStorage.length === 0"""
"""There is no body yet for a moment while it is loaded again."""


@pytest.mark.parametrize("part", ["main.js", "series.js", "console.css"])
def test_a_page_of_which_a_part_did_not_come_is_loaded_again(faked: Faked, part: str) -> None:
    faked.cut[part] = 2
    faked.page.goto(f"http://{OWN}/console")
    faked.page.wait_for_function(_WHOLE, timeout=LOADS_MS_MAX)
    assert faked.page_requests == 1 + 2 * 2


def test_a_page_of_which_a_part_never_comes_says_so_and_is_loaded_a_few_times_only(faked: Faked) -> None:
    faked.cut["main.js"] = STEPS_MAX
    faked.page.goto(f"http://{OWN}/console")
    faked.shows("state-text", "Not loaded")
    faked.shows("seen", "It is loaded again")
    expect(faked.page.locator("#seen")).to_contain_text("keeps back what is under /console/", timeout=LOADS_MS_MAX)
    faked.page.wait_for_timeout(LOADED_AGAIN_AFTER_MS + 500)
    assert faked.page_requests == 1 + 2 * 5


_SERIES = """async () => {
  const { Series } = await import("/console/series.js");
  const series = new Series();
  const commits = [];
  const take = (monotonic_ms, wallMs, count) => {
    series.take({ process: "a", monotonic_ms, samples: { pythia_commits_total: count } }, wallMs);
    commits.push(series.points.map((point) => point.commits));
  };
  take(10000, 70000, 0);
  take(12000, 72000, 20);
  take(12000, 72400, 20);
  take(500, 73000, 30);
  take(1500, 74000, 80);
  take(2500, 71000, 90);
  take(3500, 71000 + 180000, 95);
  return commits;
}"""


def test_counters_begin_anew_with_the_oracle_s_clock_and_points_with_the_wall_clock(faked: Faked) -> None:
    faked.open()
    assert faked.page.evaluate(_SERIES) == [
        [None],
        [None, 10],
        [None, 10],
        [None, 10, None],
        [None, 10, None, 50],
        [None, 10],
        [10, 5],
    ]


_CHART = """async () => {
  const { Chart } = await import("/console/chart.js");
  const place = document.createElement("div");
  const chart = new Chart(place, "Test", [{ key: "value", name: "Value" }], String, 10);
  const point = ([seconds, value]) => ({ wallMs: 1000 * seconds, value, serving: value !== null });
  chart.draw([[20, 10], [21, 5], [22, null], [23, null], [40, 10], [60, 10], [62, 0]].map(point));
  place.querySelector("details").open = true;
  await new Promise((done) => place.querySelector("details").addEventListener("toggle", done));
  const rows = [...place.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent));
  const drawn = (name) => place.querySelector(`path.${name}`).getAttribute("d");
  return [drawn("line"), drawn("outage"), rows];
}"""


def test_charts_are_by_time_and_empty_where_nobody_looked(faked: Faked) -> None:
    faked.open()
    line, outages, rows = faked.page.evaluate(_CHART)
    assert line == "M138,0.00L139,50.00M158,0.00h-0.5M178,0.00L180,100.00"
    assert outages == "M139,0H141V100H139Z"
    values = ["0", "–", "–", "–", "10", "–", "–", "no primary", "no primary", "–", "–", "–"]
    assert rows == [[f"{5 * number} s", value] for number, value in enumerate(values)]
