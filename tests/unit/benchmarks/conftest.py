"""Nothing is compiled for a command whose sides are played."""

from __future__ import annotations

import pytest

from benchmarks import surroundings
from benchmarks.compiled_code import AS_INSTALLED


@pytest.fixture(autouse=True)
def _as_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surroundings, "compiled_code", lambda progress: AS_INSTALLED)
