"""PySpark's daemon, with all imported that its workers will need: the module for ``spark.python.daemon.module``.

A worker for tasks is a fork of the daemon, and imports for two seconds of a core before it does anything. Tests begin
hundreds of them, since PySpark ends one in which something failed, or that was idle for a minute. The examples and the
demo, which run as users run them, have PySpark's own daemon.
"""

from __future__ import annotations

import importlib
from typing import Final

from pyspark.daemon import manager

from kernels import compile_all

NEEDED: Final = (
    "client.spark.source",
    "pandas",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.worker",
)

if __name__ == "__main__":
    for module in NEEDED:
        importlib.import_module(module)
    compile_all()
    manager()
