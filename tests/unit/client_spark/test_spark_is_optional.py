"""The client library works where Spark is not installed."""

from __future__ import annotations

import subprocess
import sys

from tests.imports import ROOT


def test_the_client_alone_imports_neither_spark_nor_arrow() -> None:
    program = "import sys, client; print(sorted({'pyspark', 'pyarrow'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
