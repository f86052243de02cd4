"""The Spark Connect server of the Spark that is installed, as a process on loopback, and a session by it.

PySpark is in one mode for a whole process: who has a session by Spark Connect has no other one.
"""

from __future__ import annotations

import os
import re
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import SparkSession

from client import ClientSettings
from devcluster.guard import Guard
from drills.waiting import wait_until
from tests.spark_jobs.session import MASTER, SPARK_SETTINGS, addresses, quick_environment

START_SECONDS_MAX: Final = 120.0
END_SECONDS_MAX: Final = 60.0


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """A server, by its URL, that ends even where this process is killed. What it writes goes into ``folder``."""
    log, spark = folder / "connect-server.log", Path(pyspark.__file__).parent
    settings = SPARK_SETTINGS | {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    command = [
        str(spark / "bin" / "spark-submit"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--master", MASTER),
        *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
        "spark-internal",
    ]
    with log.open("w") as output:
        server = subprocess.Popen(
            command,
            env=os.environ | quick_environment() | {"SPARK_HOME": str(spark)},
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    with Guard() as guard:
        guard.watch_process(server.pid)
        try:
            wait_until(lambda: _address(log) is not None, "Spark Connect to start", START_SECONDS_MAX, log.read_text)
            yield f"sc://{_address(log)}"
        finally:
            server.terminate()
            server.wait(END_SECONDS_MAX)


def _address(log: Path) -> str | None:
    started = re.search(r"Spark Connect server started at: (127\.0\.0\.1:\d+)", log.read_text(encoding="utf-8"))
    return None if started is None else started[1]


def session_by_connect(url: str, settings: ClientSettings) -> SparkSession:
    """The only session of this process, with an installation's addresses."""
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    made = SparkSession.builder.remote(url).getOrCreate()
    for name, value in addresses(settings).items():
        made.conf.set(name, value)
    return made
