"""The sweep of a vacuum as one Spark job: a task for each region of each table, or several.

A task is what sweeps a part of a table in any process (``client.vacuum.parts``), and Spark may repeat it, or run it
twice at once. Marks, named snapshots and what comes after the sweep stay in the process that vacuums.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import BinaryType

from client.errors import InvalidRequest
from client.manager import TransactionManager
from client.settings import ClientSettings
from client.spark.connections import manager_for
from client.spark.options import MIN_PARTITIONS_MAX
from client.spark.task_ranges import WHOLE_TABLE, task_ranges
from client.spark.worker_interpreter import warn_of_workers_without_us
from client.vacuum.parts import Orders, Part, Progress, SweptPart, here
from client.vacuum.report import TableReport
from store import CellStore, StoreError


class SparkSweep:
    """Has a vacuum's tables swept by the executors of ``spark``: ``run_vacuum(manager, sweep=SparkSweep(spark))``.

    ``min_partitions``: into so many tasks at least each table is cut, where its keys allow it; by default, and at
    least, one for each region. Each task lets as many records last as the vacuum was told. Raises ``InvalidRequest``
    for another number, and warns with ``WorkersLackPythia`` as ``register`` does. The vacuum raises Spark's own errors,
    too, and leaves then what one that was killed leaves.
    """

    def __init__(self, spark: SparkSession, *, min_partitions: int = 1) -> None:
        if type(min_partitions) is not int or not 1 <= min_partitions <= MIN_PARTITIONS_MAX:
            raise InvalidRequest(
                f"min_partitions is a number of tasks, from 1 to {MIN_PARTITIONS_MAX:,}, not {min_partitions!r}"
            )
        warn_of_workers_without_us(spark)
        self._spark = spark
        self._min_partitions = min_partitions

    def __call__(
        self, manager: TransactionManager, orders: Orders, parts: Sequence[Part], progress: Progress
    ) -> Iterator[tuple[Part, SweptPart]]:
        """See ``SweepParts``. Nothing is told before the last task has ended: Spark's own progress is its page."""
        cut = [piece for part in parts for piece in pieces_of(manager.store, part, self._min_partitions)]
        if not cut:
            return
        sweep = partial(swept_in_task, manager.settings, orders, cut)
        task = udf(sweep, BinaryType(), useArrow=False).asNondeterministic()
        job = self._spark.range(0, len(cut), 1, len(cut)).select("id", task("id"))
        done: defaultdict[str, TableReport] = defaultdict(TableReport)
        for number, told in job.collect():
            part, swept = cut[number], pickle.loads(told)
            done[part.table].add(swept.report)
            progress(part.table, done[part.table])
            yield part, swept


def pieces_of(store: CellStore, part: Part, min_partitions: int) -> list[Part]:
    """A part as the tasks sweep it; whole where its table cannot be looked at, which its task will tell."""
    try:
        tasks = task_ranges(store, part.table, part.families, WHOLE_TABLE, min_partitions=min_partitions)
    except StoreError:
        return [part]
    return [replace(part, key_range=key_range) for ranges in tasks for key_range in ranges]


def swept_in_task(settings: ClientSettings, orders: Orders, parts: Sequence[Part], number: int) -> bytes:
    """What one of the parts came to, pickled."""
    ((_, swept),) = here(manager_for(settings), orders, [parts[number]], lambda table, report: None)
    return pickle.dumps(swept)
