"""What is submitted to YARN: puts the number of its attempt into all rows of two tables, and claims a key for that.

job.py <client settings, JSON> <table> <other table> <rows> <key> <folder>

In the folder it says, by the number of the attempt, what became of it; and it waits there where a file says so.
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from client import ClientSettings, Transaction, TransactionManager
from client.spark import register

HALF, WRITTEN, LANDED = "half", "written", "landed"
"""Moments: one table is written; both are; the commit has ended."""
POLL_SECONDS: Final = 0.02


def main(settings_text: str, table: str, other: str, rows: str, key: str, folder: str) -> None:
    """Land it, or find that it has landed."""
    number = re.findall(r"_(\d+)_\d+$", os.environ["CONTAINER_ID"])[0].lstrip("0")
    place = Path(folder) / number
    place.mkdir()

    def reach(moment: str) -> None:
        (place / moment).write_text(str(os.getpid()))
        while (Path(folder) / f"hold-{number}-{moment}").exists():
            time.sleep(POLL_SECONDS)

    spark = SparkSession.Builder().getOrCreate()
    register(spark)

    def land(transaction: Transaction) -> str:
        if not transaction.claim(key):
            return "has landed before"
        handle = transaction.handle().to_json()
        for name, moment in ((table, HALF), (other, WRITTEN)):
            found = spark.range(int(rows)).selectExpr("id AS k", f"CAST({number} AS BIGINT) AS v")
            found.write.format("pythia").mode("append").options(table=name, transaction=handle).save()
            reach(moment)
        return "landed"

    with TransactionManager.connect(ClientSettings.from_json(settings_text)) as manager:
        ended = manager.run(land)
    (place / "ended").write_text(ended)
    reach(LANDED)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
