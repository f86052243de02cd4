"""The console in a real browser, beside real oracles: a failover watched, a hand-over by keyboard, a page that follows.

It needs a Chromium. As root on Debian it is installed where there is none; else these tests are skipped, and say why in
the run's summary.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Request, Route, expect

from tests.conftest import Services
from tests.console.browser import HOSTS_NETWORK_CHANGED, go_to, headless_or_skipped
from tests.console.looking import (
    controls,
    layout_shift,
    low_contrast,
    overflowing,
    scrolls_sideways,
    tabbed_through,
    unnamed,
)
from tests.console.stage import Stage, stage

pytestmark = pytest.mark.integration

WAIT_MS = 60_000
POLLS_MS = 3_200
"""Long enough that the numbers have changed three times."""
TABS_MAX = 40
STILL_MAX = 0.001
WIDTHS = (1120, 1010, 990, 720, 570, 550, 360)
"""On both sides of where the layout changes, and a telephone's."""


browser = pytest.fixture(scope="module")(headless_or_skipped)


@pytest.fixture(scope="module")
def installed(services: Services) -> Iterator[Stage]:
    """A primary a and a standby b."""
    with stage(services, "a", "b") as made:
        yield made


class Watched:
    """A page, and what went wrong on it: errors, requests that failed, and requests to anybody but its own oracle."""

    def __init__(self, browser: Browser, url: str) -> None:
        self.url = url
        self.wrong: list[str] = []
        self.page: Page = browser.new_page(viewport={"width": 1280, "height": 900})
        self.page.set_default_timeout(WAIT_MS)
        self.page.on("console", lambda message: self._note(message.type in ("error", "warning"), message.text))
        self.page.on("pageerror", lambda error: self._note(True, str(error)))
        self.page.on("requestfailed", lambda request: self._note(True, f"failed: {request.url}: {request.failure}"))
        self.page.on("request", self._asked)
        go_to(self.page, url)

    def _asked(self, request: Request) -> None:
        self._note(not request.url.startswith(self.url.removesuffix("/console")), f"asked another: {request.url}")

    def _note(self, wrong: bool, text: str) -> None:
        if wrong and HOSTS_NETWORK_CHANGED not in text:
            self.wrong.append(text)

    def shows(self, id: str, text: str) -> None:
        expect(self.page.locator(f"#{id}")).to_contain_text(text, timeout=WAIT_MS)

    def tab_to(self, id: str) -> None:
        for _ in range(TABS_MAX):
            if self.page.evaluate("() => document.activeElement.id") == id:
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{TABS_MAX} tabs did not reach {id}")

    def close(self) -> None:
        self.page.close()


@pytest.fixture
def watched(browser: Browser, installed: Stage) -> Iterator[Watched]:
    """The console of the standby, when it has something to show."""
    page = Watched(browser, installed.page("b"))
    page.shows("state-text", "Serving")
    expect(page.page.locator("#members tr")).to_have_count(2, timeout=WAIT_MS)
    yield page
    page.close()


def test_a_token_is_asked_for_where_one_is_needed_and_kept_for_the_tab_only(browser: Browser, installed: Stage) -> None:
    words = {"none": "no token came with the request", "Bearer bad": "the token is not known"}
    codes = {"none": "token-missing", "Bearer bad": "token-refused"}

    def guard(route: Route) -> None:
        given = route.request.headers.get("authorization", "none")
        if given == "Bearer good":
            route.continue_()
            return
        problem = {"code": codes[given], "status": 401, "title": "Who are you?", "detail": words[given]}
        route.fulfill(status=401, content_type="application/problem+json", body=json.dumps(problem))

    page = browser.new_page()
    try:
        page.route("**/v1/**", guard)
        go_to(page, installed.page("b"))
        expect(page.locator("#login-problem")).to_have_text(words["none"], timeout=WAIT_MS)
        expect(page.locator("#token")).to_be_focused()
        assert low_contrast(page) == []
        assert not page.locator("#main").is_visible()
        page.keyboard.type("bad")
        page.keyboard.press("Enter")
        expect(page.locator("#login-problem")).to_have_text(words["Bearer bad"], timeout=WAIT_MS)
        page.locator("#token").fill("good")
        page.keyboard.press("Enter")
        expect(page.locator("#primary")).to_have_text("a", timeout=WAIT_MS)
        assert not page.locator("#login").is_visible()
        kept = page.evaluate("() => [JSON.stringify({...localStorage}), document.cookie, sessionStorage.length]")
        assert kept == ["{}", "", 1]
        page.locator("#forget").click()
        expect(page.locator("#login-problem")).to_have_text(words["none"], timeout=WAIT_MS)
    finally:
        page.close()


def test_the_page_is_legible_named_reachable_and_still(watched: Watched) -> None:
    page = watched.page
    watched.shows("primary-at", "its console")
    watched.shows("seen", "seen from b, standby")
    expect(page.locator("#members")).to_contain_text("standby, warm", timeout=WAIT_MS)
    expect(page.locator("#tenures")).to_contain_text("First start", timeout=WAIT_MS)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert low_contrast(page) == [], scheme
    assert unnamed(page) == []
    reached, unseen = tabbed_through(page)
    assert reached == controls(page)
    assert unseen == []
    page.locator("#throughput summary").click()
    expect(page.locator("#throughput tbody tr").first).to_be_visible()
    assert layout_shift(page, POLLS_MS) < STILL_MAX
    assert page.locator("#throughput svg").get_attribute("aria-label") != ""
    page.emulate_media(reduced_motion="reduce")
    moving = "() => getComputedStyle(document.querySelector('#lease-meter span')).transitionDuration"
    assert page.evaluate(moving) == "0s"
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 740})
        assert not scrolls_sideways(page), width
        assert overflowing(page) == [], width
    assert watched.wrong == []


def test_a_failover_is_watched_a_hand_over_done_by_keyboard_and_another_page_followed(
    watched: Watched, installed: Stage
) -> None:
    page = watched.page
    installed.kill("a")
    watched.shows("state-text", "No primary")
    watched.shows("lease-more", "b waits")
    watched.shows("members", "silent")
    watched.shows("primary", "b")
    watched.shows("state-text", "Serving")
    watched.shows("tenures", "Lease ran out")
    watched.shows("said", "Before it nobody served for")
    expect(page.locator("#tenures tr")).to_have_count(2, timeout=WAIT_MS)
    assert watched.wrong == []
    installed.start("c")
    watched.shows("members", "standby, warm")
    hand_over_by_keyboard(watched)
    assert watched.wrong == []
    installed.kill("b")
    expect(page.locator("#gone")).to_be_visible(timeout=WAIT_MS)
    watched.shows("gone-pages", "The console of c")
    page.wait_for_url(f"{installed.page('c')}**", timeout=WAIT_MS)
    watched.shows("primary", "c")


def hand_over_by_keyboard(watched: Watched) -> None:
    page = watched.page
    dialog = page.locator("#dialog")
    watched.tab_to("hand-over")
    page.keyboard.press("Enter")
    expect(dialog).to_be_visible()
    expect(page.locator("#dialog-cancel")).to_be_focused()
    for _ in range(4):
        page.keyboard.press("Tab")
        assert page.evaluate("() => document.activeElement.closest('#main')") is None, "the focus left the dialog"
    assert low_contrast(page) == []
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
    expect(page.locator("#hand-over")).to_be_focused()
    watched.shows("primary", "b")
    page.keyboard.press("Enter")
    watched.shows("dialog-text", "b finishes what is under way and gives the lease back; c takes over")
    watched.tab_to("dialog-do")
    page.keyboard.press("Enter")
    watched.shows("dialog-title", "Handed over")
    watched.shows("dialog-result", "Nobody served for")
    expect(page.locator("#dialog-cancel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog).not_to_be_visible()
    watched.shows("primary", "c")
    watched.shows("tenures", "Handed over")
