"""`pythia kernels`: all is compiled, and said where it is kept."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import numba
import pytest
from click.testing import CliRunner, Result

import kernels
from kernels import commands
from kernels.commands import kernels as command
from tests.imports import ROOT

FIXED, FREE = (
    "from kernels import kernel\n@kernel('int64(int64)')\ndef doubled(number):\n    return 2 * number\n",
    "from kernels import kernel\n@kernel()\ndef halved(number):\n    return number / 2\n\n"
    "def use_it():\n    halved(1)\n    halved(1.0)\n",
)


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """What the rooms name: two modules, whose kernels are kept beside them."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for name, text in (("fixed_kernels", FIXED), ("free_kernels", FREE)):
        (packages / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(packages)
    monkeypatch.setattr(numba.core.config, "CACHE_DIR", "")
    of_the_test: list[object] = []
    monkeypatch.setattr(kernels, "KERNELS", of_the_test)
    monkeypatch.setattr(commands, "KERNELS", of_the_test)
    named = [
        EntryPoint("fixed", "fixed_kernels", commands.GROUP),
        EntryPoint("free", "free_kernels:use_it", commands.GROUP),
    ]
    monkeypatch.setattr(commands, "entry_points", lambda group: named if group == commands.GROUP else [])
    return named


def run() -> Result:
    return CliRunner().invoke(command)


def test_it_compiles_what_has_types_and_calls_what_has_none(named: list[EntryPoint], tmp_path: Path) -> None:
    assert run().output == f"3 compiled, 0 were there; all are in {tmp_path / 'packages' / '__pycache__'}\n"
    assert len(list((tmp_path / "packages" / "__pycache__").glob("*.kernel"))) == 3


def test_what_needs_a_package_that_is_not_there_is_left_out_and_named(named: list[EntryPoint]) -> None:
    named.append(EntryPoint("spark", "needs_absent", commands.GROUP))
    (Path(named[0].load().__file__).parent / "needs_absent.py").write_text("import absent.part")
    ended = run()
    assert "spark is left out: absent is not installed" in ended.stderr
    assert ended.exit_code == 0
    assert "3 compiled" in ended.stdout


def test_a_part_of_the_project_that_is_missing_is_a_defect(named: list[EntryPoint]) -> None:
    named.append(EntryPoint("lost", "lost.part", commands.GROUP))
    assert isinstance(run().exception, ModuleNotFoundError)


def test_where_nothing_can_be_kept_it_fails_and_says_what_to_do(
    named: list[EntryPoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernels.keeping.places", lambda source, making=False: iter(()))
    ended = run()
    assert ended.exit_code == 1
    assert "3 of 3 could be kept nowhere: set NUMBA_CACHE_DIR" in ended.stderr


def test_it_is_a_command_that_the_makefile_knows() -> None:
    assert "$(VENV)/pythia kernels\n" in (ROOT / "Makefile").read_text()
