"""Every room is packaged, checked, and part of the images: a list that forgets one breaks an installation only."""

from __future__ import annotations

import re
import tomllib

from tests.imports import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ROOMS = {door.parent.name for door in ROOT.glob("*/__init__.py")}
UNPACKAGED = {"examples", "tests"}


def test_every_package_is_packaged() -> None:
    packages = {
        ".".join(door.parent.relative_to(ROOT).parts) for room in ROOMS for door in (ROOT / room).rglob("__init__.py")
    }
    named = set(PROJECT["tool"]["setuptools"]["packages"])
    assert {package for package in packages if package.partition(".")[0] not in UNPACKAGED} == named


def test_every_package_says_that_it_has_types() -> None:
    assert {room for room in ROOMS - UNPACKAGED if not (ROOT / room / "py.typed").exists()} == set()


def test_every_room_is_checked_and_in_the_images() -> None:
    checked = re.search(r"^CODE := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert checked is not None
    assert set(checked[1].split()) >= ROOMS
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert let_in >= ROOMS - {"tests"}
