"""Jars that a server of the tests runs on, by a list beside its module: fetched once, and checked at every use."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from devcluster.artifacts import Artifact, parse_list
from devcluster.jars import ensure_listed
from devcluster.resolve import find_client

FETCH_SECONDS_MAX: Final = 1_200.0


def listed(place: Path) -> tuple[Artifact, ...]:
    """What the list in a folder names."""
    return parse_list((place / "jars.sha256").read_text())


def fetched(place: Path, java: Path) -> tuple[Path, ...]:
    """The files. Raises what ``devcluster.jars.ensure_listed`` does."""
    return ensure_listed(listed(place), lambda: find_client(java), java, FETCH_SECONDS_MAX, lambda step: None)
