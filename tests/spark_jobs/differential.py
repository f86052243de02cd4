"""Story after story in one Spark session, until the time is over, or one of them is not as it has to be."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from client import TransactionManager
from tests.spark_jobs.inventing import ACTS, invent
from tests.spark_jobs.running import Difference, StoryRun
from tests.spark_jobs.steps import Story


@dataclass
class Report:
    """``done``: steps by kind; ``differences``: the seeds that failed, and how."""

    seeds: int = 0
    done: Counter[str] = field(default_factory=Counter)
    differences: dict[int, str] = field(default_factory=dict)


def explore(
    spark: SparkSession,
    manager: TransactionManager,
    seeds: Iterable[int],
    prefix: str,
    *,
    minutes_max: float,
    acts: int = ACTS,
    say: Callable[[str], None],
    progress: Callable[[str], None],
    keep_going: bool = False,
) -> Report:
    """Run the story of each seed; a failure is said with its seed and its steps. The first one ends it, by default."""
    report = Report()
    started = time.monotonic()
    for seed in seeds:
        if time.monotonic() - started >= minutes_max * 60:
            break
        story = invent(seed, acts)
        run = StoryRun(spark, manager, story, f"{prefix}_{seed}")
        report.seeds += 1
        try:
            run.run()
            progress(f"seed {seed}: {len(story.steps)} steps")
        except Difference as difference:
            report.differences[seed] = str(difference)
            say("\n".join([*told(story, run.reached), f"DIFFERENCE: {difference}", f"again: {again(seed, acts)}"]))
            if not keep_going:
                break
        finally:
            report.done += run.done
            run.drop()
    return report


def told(story: Story, reached: int) -> list[str]:
    """The story of a seed up to that step, a line a step."""
    head = [f"seed {story.seed}", *(f"  {table}" for table in story.tables)]
    return [*head, *(f"  {number}. {step}" for number, step in enumerate(story.steps[:reached], 1))]


def again(seed: int, acts: int) -> str:
    """The command that runs a seed once more."""
    return f"python -m tests.spark_jobs differential --seeds 1 --first-seed {seed} --acts {acts}"
