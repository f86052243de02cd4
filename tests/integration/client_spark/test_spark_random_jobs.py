"""Random jobs against the model, and kills in the middle of jobs: a few of the many of ``tests.spark_jobs``."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from client import TransactionManager
from devcluster.guard import Guard
from drills.installation import Plan, installed
from tests.conftest import Services
from tests.spark_jobs.differential import explore
from tests.spark_jobs.gateway import Gateway
from tests.spark_jobs.kills import DRIVER, GATEWAY, PRIMARY, WORKER, Ground, campaign
from tests.spark_jobs.processes import python_workers

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),  # at mapInArrow
]

SEEDS = (1, 2)
ROWS = 1_500
CAMPAIGN_SECONDS_MAX = 900
"""Seven jobs in turn, each read at every snapshot: on a busy machine that took longer than any test may."""


@pytest.mark.parametrize("seed", SEEDS)
def test_random_jobs_leave_what_the_model_says(spark: SparkSession, manager: TransactionManager, seed: int) -> None:
    said: list[str] = []
    prefix = f"jobs_{uuid.uuid4().hex[:8]}"
    report = explore(spark, manager, [seed], prefix, minutes_max=60, acts=4, say=said.append, progress=said.append)
    assert not report.differences, "\n".join(said)


def test_the_workers_to_kill_are_found(spark: SparkSession) -> None:
    assert spark.sparkContext.parallelize([1]).map(lambda number: number + 1).collect() == [2]
    assert python_workers()


@pytest.fixture
def ground(spark: SparkSession, services: Services, tmp_path: Path) -> Iterator[Ground]:
    with (
        Guard() as guard,
        installed(
            Plan(tmp_path, 2, zookeeper=services.zookeeper, thrift=services.thrift), guard, lambda _: None
        ) as here,
    ):
        gateway = Gateway(tmp_path / "gateway", services.zookeeper, guard)
        gateway.start()
        try:
            prefix = f"{here.settings.root.strip('/')}_kills"
            yield Ground(spark, here, gateway, prefix, ROWS, random.Random(uuid.uuid4().int))
        finally:
            gateway.kill()


@pytest.mark.timeout(CAMPAIGN_SECONDS_MAX)
def test_whatever_is_killed_a_job_lands_whole_or_not_at_all(ground: Ground) -> None:
    endings = list(campaign(ground, [WORKER, PRIMARY, GATEWAY, DRIVER], 1))
    assert [ending for ending in endings if ending.violations] == []
    assert sum(ending.snapshots for ending in endings) > 0
