"""Tasks that fail, made of Spark's public calls alone: something before the write raises when some rows have gone by.

The rows that went by have reached the writer, or not, as it happens: both have to end well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from tests.spark_jobs.steps import Fault

WANTED = "a fault that the story asks for"
_FAILURES = {Fault.ONCE: 1, Fault.ALWAYS: 1_000}


def with_fault(data: DataFrame, fault: Fault) -> DataFrame:
    """The same rows, but tasks fail in the middle of them."""
    if fault is Fault.NONE:
        return data
    return data.mapInArrow(failing(_FAILURES[fault]), data.schema)


def failing(failures: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What lets the first half of a task's rows pass, and fails in the first ``failures`` attempts."""

    def half(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        for batch in batches:
            middle = batch.num_rows // 2
            yield batch.slice(0, middle)
            if task.attemptNumber() < failures:
                raise RuntimeError(WANTED)
            yield batch.slice(middle)

    return half
