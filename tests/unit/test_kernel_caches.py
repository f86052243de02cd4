"""A compiled kernel is not used after a change of what it was compiled from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.kernel_caches import drop_stale_kernels

SOURCES = {
    "room/__init__.py": "",
    "room/kernels.py": "import numba\nfrom room.callees import called\nfrom other import SIZE\n",
    "room/callees.py": "import numba\n",
    "room/nested/__init__.py": "",
    "room/nested/alone.py": "from kernels import kernel\nimport numpy\n",
    "room/plain.py": "from room.kernels import kernel\n",
    "other/__init__.py": "from other.sizes import SIZE\nfrom other.unrelated import thing\n",
    "other/sizes.py": "from other.units import UNIT\nSIZE = 5 * UNIT\n",
    "other/units.py": "UNIT = 1\n",
    "other/unrelated.py": "",
}
KERNELS, CALLEES, ALONE = (
    {f"room/__pycache__/kernels.kernel-4.py311.{kind}" for kind in ("nbi", "1.nbc")},
    {f"room/__pycache__/callees.called-2.py311.{kind}" for kind in ("nbi", "1.nbc")},
    {f"room/nested/__pycache__/alone.kernel-3.py311.{kind}" for kind in ("nbi", "1.nbc")},
)
BYTE_CODE = {"room/__pycache__/kernels.cpython-311.pyc"}
WRITTEN_S, COMPILED_S, CHANGED_S = 1_000, 2_000, 3_000


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Sources, and the caches that were made of them later."""
    texts = SOURCES | dict.fromkeys(KERNELS | CALLEES | ALONE | BYTE_CODE, "")
    for name, text in texts.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        touch(file, WRITTEN_S if name in SOURCES else COMPILED_S)
    return tmp_path


def touch(file: Path, at_s: int) -> None:
    os.utime(file, (at_s, at_s))


def kept(project: Path) -> set[str]:
    return {str(file.relative_to(project)) for file in project.rglob("__pycache__/*")}


@pytest.mark.parametrize(
    ("changed", "stale"),
    [
        ("room/kernels.py", KERNELS),
        ("room/callees.py", KERNELS | CALLEES),
        ("other/sizes.py", KERNELS),
        ("other/units.py", KERNELS),
        ("other/unrelated.py", set()),
        ("room/plain.py", set()),
        ("room/nested/alone.py", ALONE),
    ],
)
def test_what_was_compiled_from_a_changed_file_is_dropped(project: Path, changed: str, stale: set[str]) -> None:
    touch(project / changed, CHANGED_S)
    assert {str(cache.relative_to(project)) for cache in drop_stale_kernels(project)} == stale
    assert kept(project) == (KERNELS | CALLEES | ALONE | BYTE_CODE) - stale


def test_without_a_change_everything_is_kept(project: Path) -> None:
    assert drop_stale_kernels(project) == []
    assert kept(project) == KERNELS | CALLEES | ALONE | BYTE_CODE
