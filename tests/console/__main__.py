"""`python -m tests.console`: the pictures in docs/operations/console.md, of real oracles under load, two killed.

It takes a ZooKeeper and an HBase, such as `pythia dev up` brings up, and a minute.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import click
from playwright.sync_api import Browser, Page, Route, expect

from tests.conftest import Services
from tests.console.browser import go_to, headless
from tests.console.stage import LIFE_MS, load, stage
from tests.imports import ROOT

PICTURES = ROOT / "docs" / "operations" / "pictures"
BYTES_MAX = 150_000
WAIT_MS = 60_000
FILLED_MS = 40_000
"""So much is to be seen in the charts."""


@click.command()
@click.option("--zookeeper", required=True, metavar="HOST:PORT", help="ZooKeeper.")
@click.option("--thrift", required=True, metavar="HOST:PORT", help="HBase's Thrift gateway.")
@click.option("--into", default=PICTURES, type=click.Path(path_type=Path), help="Where the pictures go.")
def main(zookeeper: str, thrift: str, into: Path) -> None:
    """Take the pictures of the console."""
    into.mkdir(parents=True, exist_ok=True)
    with (
        headless() as browser,
        stage(Services(zookeeper, thrift), "oracle-1", "oracle-2", "oracle-3") as made,
        load(made.settings, threads=3, pause_s=0.01) as manager,
    ):
        held = [manager.transaction() for _ in range(3)]
        with opened(browser, made.page("oracle-2")) as page:
            login(browser, made.page("oracle-2"), into)
            page.wait_for_timeout(max(FILLED_MS, LIFE_MS))
            shoot(page, into / "console-light.png")
            page.emulate_media(color_scheme="dark")
            shoot(page, into / "console-dark.png")
            phone(page, into / "console-phone.png")
            made.kill("oracle-1")
            expect(page.locator("#state-text")).to_have_text("No primary", timeout=WAIT_MS)
            page.wait_for_timeout(200)
            shoot(page, into / "console-failover.png")
            expect(page.locator("#tenures")).to_contain_text("Lease ran out", timeout=WAIT_MS)
            page.wait_for_timeout(8_000)
            hand_over(page, into / "console-hand-over.png")
            made.kill("oracle-2")
            expect(page.locator("#gone")).to_be_visible(timeout=WAIT_MS)
            shoot(page, into / "console-gone.png", full=False)
        for transaction in held:
            transaction.rollback()


@contextlib.contextmanager
def opened(browser: Browser, url: str) -> Iterator[Page]:
    """The console, when it shows who serves."""
    page = browser.new_page(viewport={"width": 1120, "height": 820}, color_scheme="light")
    try:
        go_to(page, url)
        expect(page.locator("#state-text")).to_have_text("Serving", timeout=WAIT_MS)
        yield page
    finally:
        page.close()


def login(browser: Browser, url: str, into: Path) -> None:
    """What is shown where a token is asked for."""

    def refuse(route: Route) -> None:
        problem = {
            "code": "token-missing",
            "title": "A token is needed",
            "detail": "No token came with the request.",
        }
        route.fulfill(status=401, content_type="application/problem+json", body=json.dumps(problem))

    page = browser.new_page(viewport={"width": 900, "height": 420}, color_scheme="light")
    try:
        page.route("**/v1/**", refuse)
        go_to(page, url)
        expect(page.locator("#login-problem")).not_to_be_empty(timeout=WAIT_MS)
        shoot(page, into / "console-login.png")
    finally:
        page.close()


def phone(page: Page, path: Path) -> None:
    """As on a telephone, its first screen."""
    page.set_viewport_size({"width": 360, "height": 780})
    page.emulate_media(color_scheme="light")
    page.wait_for_timeout(1_500)
    shoot(page, path, full=False)
    page.set_viewport_size({"width": 1120, "height": 820})


def hand_over(page: Page, path: Path) -> None:
    """The dialog after it was done."""
    page.locator("#hand-over").click()
    page.locator("#dialog-do").click()
    expect(page.locator("#dialog-result")).to_contain_text("Nobody served for", timeout=WAIT_MS)
    shoot(page, path, full=False)
    page.keyboard.press("Escape")


def shoot(page: Page, path: Path, *, full: bool = True) -> None:
    """One picture, small enough to live in the repository."""
    page.screenshot(path=path, full_page=full)
    size = path.stat().st_size
    if size > BYTES_MAX:
        raise click.ClickException(f"{path} has {size:,} bytes, more than {BYTES_MAX:,}")
    click.echo(f"{path.name}: {size:,} bytes")


if __name__ == "__main__":
    main()
