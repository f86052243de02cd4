"""The Spark Connect server of the Spark that is installed, as a process on loopback."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pyspark

from drills.waiting import wait_until
from tests.spark_jobs.session import MASTER, SMALL_AND_ON_LOOPBACK, environment

START_SECONDS_MAX: Final = 120.0
END_SECONDS_MAX: Final = 60.0
_STARTED: Final = re.compile(r"Spark Connect server started at: (127\.0\.0\.1:\d+)")


class ConnectServer:
    """Runs until ``end``; what it writes goes into a file of ``folder``."""

    def __init__(self, folder: Path) -> None:
        settings = SMALL_AND_ON_LOOPBACK | {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
        }
        spark = Path(pyspark.__file__).parent
        self._log = folder / "connect-server.log"
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    str(spark / "bin" / "spark-submit"),
                    *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
                    *("--master", MASTER),
                    *(part for name, value in settings.items() for part in ("--conf", f"{name}={value}")),
                    "spark-internal",
                ],
                env=os.environ | environment() | {"SPARK_HOME": str(spark)},
                cwd=folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def until_started(self) -> str:
        """The URL by which clients connect."""
        wait_until(lambda: bool(self._addresses()), "Spark Connect to start", START_SECONDS_MAX, self._log.read_text)
        (address,) = self._addresses()
        return f"sc://{address}"

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(END_SECONDS_MAX)

    def _addresses(self) -> list[str]:
        return _STARTED.findall(self._log.read_text(encoding="utf-8"))
