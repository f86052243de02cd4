"""What Python runs first in each of Spark's Python processes in tests, since its folder is on their path.

Spark has its own archive of PySpark before everything else on that path, and an archive has no compiled modules: each
process would compile what it takes of PySpark, for half a second of a core and more. The package that is installed is
the same one.

Driver and tasks speak to forks of daemons: one for tasks, and one for each kind of question about a data source. Each
fork imports for up to two seconds of a core before it does anything, and Spark ends one in which something failed, or
that was idle for a minute, so that tests begin hundreds of them. Here the daemon imports what its forks will need.

The examples and the demo, which run as users run them, know nothing of this.
"""

from __future__ import annotations

import gc
import importlib
import sys
from typing import Final

DAEMON: Final = "pyspark.daemon"
OF_QUESTIONS: Final = ("client.spark.source", "pyspark.sql.worker.plan_data_source_read")
OF_TASKS: Final = (*OF_QUESTIONS, "pandas", "pyspark.sql.pandas.serializers", "pyspark.worker")


def prepare(command: list[str]) -> None:
    """``command``: how the interpreter was started."""
    sys.path[:] = [place for place in sys.path if not place.endswith(("pyspark.zip", "-src.zip"))]
    if DAEMON not in command:
        return
    forks = command[command.index(DAEMON) + 1]
    for module in OF_TASKS if forks == "pyspark.worker" else (*OF_QUESTIONS, forks):
        importlib.import_module(module)
    if forks == "pyspark.worker":
        from kernels import compile_all

        compile_all()
    gc.freeze()  # or each fork goes over all this, after each task and each question


prepare(sys.orig_argv)
