"""The pages of the documentation, and what can be read from them without understanding them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.imports import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]

_FENCE = re.compile(r"^( *)(```+)(\w*)[^\n]*\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block: the language that it says, and its lines."""

    language: str
    text: str


@cache
def text_of(name: str) -> str:
    """A page as it is."""
    return (ROOT / name).read_text()


def blocks(name: str) -> list[Block]:
    """The fenced blocks of a page."""
    return [Block(match[3], match[4]) for match in _FENCE.finditer(text_of(name))]


def prose(name: str) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", text_of(name))


def codes(name: str) -> list[str]:
    """What stands between single backticks in the prose."""
    return re.findall(r"(?<!`)`([^`\n]+(?:\n[^`\n]+)?)`(?!`)", prose(name))


@cache
def anchors(name: str) -> frozenset[str]:
    """The anchors of a page's headings, as the usual renderers make them."""
    found: dict[str, int] = {}
    made: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+?) *$", prose(name), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        count = found.get(slug, 0)
        found[slug] = count + 1
        made.add(f"{slug}-{count}" if count else slug)
    return frozenset(made)


def links(name: str) -> Iterator[str]:
    """The targets of a page's links that lead into the project."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(name)):
        if not re.match(r"[a-z]+:", target):
            yield target


def resolved(name: str, target: str) -> tuple[Path, str]:
    """Where a link of a page leads: a path, and an anchor there (``""``: none)."""
    path, _, anchor = target.partition("#")
    here = ROOT / name
    return ((here.parent / path).resolve() if path else here), anchor
