"""Which Python Spark plans and writes with: not the driver's own, where nothing told it so.

Spark starts ``PYSPARK_PYTHON``, or else whichever ``python3`` comes first on the path. A driver that was started as
``.venv/bin/python job.py`` so gets workers without this package, and an error of Spark's that does not say why. A
program that uses Spark Connect always has another Python than the server that it connects to.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import warnings
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_IMPORT_SECONDS_MAX = 60.0
"""Far longer than an import takes; after that nothing is known, and Spark is left to find out."""
_INTERPRETERS_MAX = 16
"""How many are remembered; a program has one, as a rule."""
_WHAT_WORKERS_IMPORT = "from client import TransactionManager; import pyarrow"
"""Of what this library needs, all that Spark does not bring along, as it does PySpark."""


class WorkersLackPythia(RuntimeWarning):
    """Spark's Python workers, on this machine or on Spark Connect's, cannot import this library, or a part of what it
    needs; the text says what to do.
    """


def warn_of_workers_without_us(spark: SparkSession) -> None:
    """Warn (``WorkersLackPythia``) where the Python that Spark starts on this machine cannot import this library.

    A warning, for Spark may be given the library in a way that is not seen from here (``addPyFile``). Nothing is looked
    at with Spark Connect. An interpreter of the driver's own environment is believed; another one is run once, which
    takes as long as the import does.
    """
    context = getattr(spark, "sparkContext", None)
    if context is None:
        return
    interpreter = shutil.which(context.pythonExec)
    if interpreter is None or is_of_the_same_environment(interpreter, sys.executable) or _imports_us(interpreter):
        return
    warnings.warn(
        f"Spark's workers run {interpreter}, which cannot import Pythia with PyArrow, while this program runs "
        f"{sys.executable}: set PYSPARK_PYTHON={sys.executable} before the session is made, or install "
        "pythia-tso[spark] there",
        WorkersLackPythia,
        stacklevel=3,
    )


def warn_of_a_server_without_us(spark: SparkSession, format_name: str) -> None:
    """The same with Spark Connect, once our format is registered: its server is asked for a read without a table, which
    this library refuses.
    """
    if getattr(spark, "sparkContext", None) is not None:
        return
    try:
        spark.read.format(format_name).load().collect()
    except PySparkException as error:
        missing = re.search(r"No module named '([\w.]+)'", str(error))
        if missing is not None:
            warnings.warn(
                f"the Python of Spark Connect's server cannot import {missing[1]}: install pythia-tso[spark] there and "
                "where its executors are",
                WorkersLackPythia,
                stacklevel=3,
            )


def is_of_the_same_environment(one: str, other: str) -> bool:
    """Whether two paths are the names of one interpreter in one folder.

    The folder counts: in each virtual environment the interpreter is a link to the same file.
    """
    return Path(one).absolute().parent == Path(other).absolute().parent and Path(one).resolve() == Path(other).resolve()


@lru_cache(maxsize=_INTERPRETERS_MAX)
def _imports_us(interpreter: str) -> bool:
    """Whether it can; so, too, where that cannot be found out. Once a process: each thread that writes registers."""
    try:
        tried = subprocess.run(
            [interpreter, "-c", _WHAT_WORKERS_IMPORT],  # in the folder and environment of the caller's, as Spark does
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_IMPORT_SECONDS_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return True
    return tried.returncode == 0
