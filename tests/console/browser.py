"""A headless Chromium: found, or installed through apt-get where that can be done, or its absence said aloud."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Error, Page, sync_playwright

from devcluster.jars import cache_home

NAMES = ("chromium", "chromium-browser", "google-chrome")
INSTALL_SECONDS_MAX = 200
PACKAGE = "chromium"
_MISSING = f"no {PACKAGE} on the PATH"
TRIES_MAX = 5
HOSTS_NETWORK_CHANGED = "net::ERR_NETWORK_CHANGED"
"""What a browser says of all that was on its way when the host got another network: containers of other tests do."""


class NoBrowser(Exception):
    """There is none, and none could be installed; the text says why, and what to do."""


def browser_path() -> str:
    """Where a Chromium is; as root on Debian it is installed where there is none. Raises ``NoBrowser``."""
    found = _found()
    if found is None:
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise NoBrowser(f"{_MISSING}, and it can be installed only as root with apt-get: install it yourself")
        place = cache_home() / "browser.lock"
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes, and apt-get in one at a time
            if _found() is None:
                _install()
        found = _found()
    if found is None:
        raise NoBrowser(f"none of {', '.join(NAMES)} is on the PATH")
    return found


@contextmanager
def headless() -> Iterator[Browser]:
    """A browser without a window, which reaches loopback directly. Raises ``NoBrowser``."""
    path = browser_path()
    arguments = ["--no-sandbox", "--no-proxy-server", "--disable-dev-shm-usage"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


def headless_or_skipped() -> Iterator[Browser]:
    """What fixtures give; where there is no browser their tests are skipped aloud."""
    try:
        with headless() as browser:
            yield browser
    except NoBrowser as error:
        pytest.skip(f"the console was looked at in no browser: {error}")


def go_to(page: Page, url: str) -> None:
    """Have a page show what is there; where the host's network changes meanwhile, it is tried again."""
    for tries_left in reversed(range(TRIES_MAX)):
        try:
            page.goto(url)
            return
        except Error as error:
            if not tries_left or HOSTS_NETWORK_CHANGED not in error.message:
                raise


def _found() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


def _install() -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", PACKAGE]):
        try:
            done = subprocess.run(
                ["apt-get", *command], capture_output=True, text=True, env=environment, timeout=INSTALL_SECONDS_MAX
            )
        except subprocess.TimeoutExpired:
            raise NoBrowser(f"{_MISSING}, and apt-get {command[0]} took more than {INSTALL_SECONDS_MAX} s") from None
        if done.returncode != 0:
            raise NoBrowser(f"{_MISSING}, and apt-get {command[0]} failed: {done.stderr[-300:]}")
