"""An oracle that is to run alone looks whether another one is there, since nothing else keeps them apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from commit_table import system_table
from lease.records import EpochRecord
from lease.solo import SoloRecord, SoloRegistry
from store import MemoryCellStore
from tso.alone import NotAlone, require_alone

ROOT = "/pythia"
NOBODYS = "127.0.0.1:1"


@pytest.fixture
def store() -> MemoryCellStore:
    """On which somebody has served alone, at an address where nobody answers now."""
    store = MemoryCellStore()
    registry = SoloRegistry(store, system_table(ROOT, "epoch"))
    registry.create()
    registry.replace(None, SoloRecord(EpochRecord(1, 3, 1), "nonce", NOBODYS))
    assert registry.read() is not None
    return store


def test_where_nobody_answers_any_more_it_serves(store: MemoryCellStore) -> None:
    require_alone(store, ROOT)
    require_alone(MemoryCellStore(), ROOT)


def test_whoever_answers_there_is_not_left_beside(store: MemoryCellStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A standby, too: alone, it has given up its lease since it stood still, and takes it again."""
    monkeypatch.setattr("tso.alone.ask_status", lambda address, timeout_ms: None)
    with pytest.raises(NotAlone, match=r"serves at 127\.0\.0\.1:1: end it first"):
        require_alone(store, ROOT)


def test_where_nobody_can_be_asked_it_does_not_serve(
    store: MemoryCellStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PYTHIA_TOKEN_FILE", str(tmp_path / "none"))
    with pytest.raises(NotAlone, match=r"may serve at 127\.0\.0\.1:1, and does not tell: .*No such file"):
        require_alone(store, ROOT)
