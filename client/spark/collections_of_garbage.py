"""What PySpark's collections of garbage are spared in a Python process that stays for many tasks.

PySpark collects after each task, over every object of the process. The modules that tasks need, Pythia's, PyArrow's and
numba's, make 100,000 to 200,000 of them, and none is garbage before the process ends: 25 to 100 ms of a core, for which
the process's next task waits.

So what has survived the collection after a process's first task is left out of all later ones (``gc.freeze``, meant for
servers that fork). What is alive then and is garbage later is freed as ever, unless it refers to itself: that alone
stays until the process ends.
"""

from __future__ import annotations

import gc

from pyspark import TaskContext

_first_task: int | None = None
_is_spared = False


def spare_what_stays() -> None:
    """To be called in every task, and as often as one likes. Elsewhere than in a task nothing happens."""
    global _first_task, _is_spared
    context = TaskContext.get()
    if _is_spared or context is None:
        return
    task = context.taskAttemptId()
    if _first_task is None:
        _first_task = task
    elif task != _first_task:
        gc.freeze()
        _is_spared = True
