"""A Spark session for tests: small, on loopback, its Python workers able to import this project."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from unittest.mock import patch

from pyspark.sql import SparkSession

from client import ClientSettings
from tests.imports import ROOT

TASK_ATTEMPTS: int = 3
MASTER: Final = f"local[2,{TASK_ATTEMPTS}]"
INTERPRETER: Final = ROOT / "tests" / "spark_jobs" / "interpreter"
SPARK_SETTINGS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "America/New_York",
}
"""Whatever the tests are: small, and on loopback."""
WITHOUT_CODEGEN: Final = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Java that is made and compiled for each query does not pay for a few rows. Spark Connect's server still makes it."""


def environment() -> dict[str, str]:
    """By which Spark's Python workers are those of this process, and find the project."""
    return {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": _path_with(ROOT),
    }


def quick_environment() -> dict[str, str]:
    """``environment``, with workers that are soon there (``interpreter``)."""
    return environment() | {"PYTHONPATH": _path_with(INTERPRETER, ROOT)}


def _path_with(*places: Path) -> str:
    return os.pathsep.join([*map(str, places), *filter(None, [os.environ.get("PYTHONPATH")])])


def addresses(settings: ClientSettings) -> dict[str, str]:
    """The settings of a session by which the data source finds an installation."""
    return {f"spark.pythia.{name}": getattr(settings, name) for name in ("zookeeper", "thrift", "root")}


@contextmanager
def session(settings: ClientSettings, *, log_level: str = "OFF") -> Iterator[SparkSession]:
    """Two cores, tasks tried up to three times; the session's zone has hours twice and hours that are not there.

    ``log_level``: nothing by default, since tasks fail here all the time.
    """
    with (
        patch.dict(os.environ, quick_environment()),
        tempfile.TemporaryDirectory(prefix="pythia-spark-jobs-") as warehouse,
    ):
        builder = SparkSession.Builder().master(MASTER).appName("pythia tests")
        for name, value in {
            **SPARK_SETTINGS,
            **WITHOUT_CODEGEN,
            "spark.sql.warehouse.dir": warehouse,
            **addresses(settings),
        }.items():
            builder = builder.config(name, value)
        made = builder.getOrCreate()
        made.sparkContext.setLogLevel(log_level)
        try:
            yield made
        finally:
            made.stop()
