"""Kernels: compiled when they are called, for their own types; whoever only imports them imports no numba."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import numpy.typing as npt
import pytest

from kernels import Kernel, compile_all, kernel
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


def test_where_nothing_can_be_kept_each_process_compiles_for_itself(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As where a service's user has no home, and the packages are somebody else's."""
    monkeypatch.setattr(Kernel, "are_kept", True)
    monkeypatch.setattr("numba.core.caching.CompileResultCacheImpl._locator_classes", [])
    tripled = Kernel(lambda number: 3 * number, "int64(int64)", nogil=False)
    quartered = Kernel(lambda number: number // 4, "int64(int64)", nogil=False)
    assert (tripled(5), quartered(8)) == (15, 2)
    (line,) = caplog.messages
    assert "NUMBA_CACHE_DIR" in line


def test_whoever_plans_a_spark_job_imports_neither_numba_nor_pandas() -> None:
    """Each would be a quarter of the time for which the first job of a session waits for its processes."""
    program = "import sys, client.spark.source, tso.settings; print({'numba', 'pandas'} & set(sys.modules))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert answer.stdout.strip() == "set()"


def test_the_images_are_built_with_every_kernel_that_an_oracle_loads() -> None:
    steps = (ROOT / "docker" / "Dockerfile").read_text()
    (program,) = re.findall(
        r"python -c '(import [\w.]+); from tso.warmth import warm_kernels; warm_kernels\(\)'", steps
    )
    look = f"{program}; import sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", look], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {"tso.process", "store.hbase.encoding", "commit_table.columns"} <= set(loaded.stdout.split())
