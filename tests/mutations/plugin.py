"""What makes the tests of a mutated copy deterministic, and sure to test that copy; loaded by pytest in the copy."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

COPIED_ROOMS = ("client", "commit_table", "lease", "store", "tso", "wire")


def pytest_configure() -> None:
    """The same examples in every run, none remembered from another, and no time spent on making them smaller."""
    settings.register_profile(
        "mutations",
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=(HealthCheck.too_slow,),
    )
    settings.load_profile("mutations")


def pytest_collection_finish(session: pytest.Session) -> None:
    """An installed package in place of the copy's would let every mutation survive, or blame a wrong one."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.partition(".")[0] in COPIED_ROOMS and file and session.config.rootpath not in Path(file).parents:
            raise pytest.UsageError(f"{name} was imported from {file}, not from the copy in {session.config.rootpath}")
