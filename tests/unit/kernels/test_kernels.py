"""Kernels: compiled when they are called, for their own types; whoever only imports them imports no numba."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from kernels import KERNELS, Kernel, compile_all, kernel
from kernels.commands import load_all
from tests.imports import ROOT

Numbers = npt.NDArray[np.int64]


@kernel()
def doubled(number: int) -> int:
    return 2 * number


@kernel("int64(int64[::1])", nogil=True)
def sum_of_doubles(numbers: Numbers) -> int:
    """Twice the sum."""
    total = 0
    for place in range(numbers.shape[0]):
        total += doubled(numbers[place])
    return total


def test_a_kernel_is_compiled_at_its_first_call_with_those_that_it_calls() -> None:
    assert sum_of_doubles.__doc__ == "Twice the sum."
    assert sum_of_doubles(np.arange(5)) == 20
    assert sum_of_doubles.compile() is sum_of_doubles.compile()
    assert not isinstance(doubled, Kernel), "what other kernels call is numba's own from then on"


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match="No matching definition"):
        sum_of_doubles(np.arange(5.0))  # type: ignore[arg-type]


def test_what_must_not_wait_has_all_compiled() -> None:
    compile_all()
    assert sum_of_doubles(np.arange(2)) == 2


def test_whoever_plans_a_spark_job_imports_neither_numba_nor_pandas() -> None:
    """Each would be a quarter of the time for which the first job of a session waits for its processes."""
    program = "import sys, client.spark.source, tso.settings; print({'numba', 'pandas'} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert answer.stdout.strip() == "set()"


def test_the_images_are_built_with_every_kernel() -> None:
    """Those of the library only where PySpark is, which comes later."""
    steps = (ROOT / "docker" / "Dockerfile").read_text().split("\nFROM ")
    images = {step.rpartition("AS ")[2].partition("\n")[0]: step for step in steps if " AS " in step}
    for name in ("oracle", "runner"):
        assert "RUN pythia kernels\n" in images[name], name


def test_all_modules_of_kernels_are_reached_by_what_the_rooms_name() -> None:
    """And so compiled by `pythia kernels`, where an image or an archive is made."""
    load_all()
    sources = {Path(each.__wrapped__.__code__.co_filename) for each in KERNELS}
    rooms = [door.parent for door in ROOT.glob("*/__init__.py") if door.parent.name != "tests"]
    have = {file for room in rooms for file in room.rglob("*.py") if re.search(r"^@kernel\(", file.read_text(), re.M)}
    assert len(have) > 10
    assert have <= sources
