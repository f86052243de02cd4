"""A Spark session and a transaction manager on an oracle of their own, for benchmarks of Spark jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

from benchmarks.our_oracle import OurOracle
from benchmarks.plain_source import PlainSource
from benchmarks.surroundings import Surroundings
from client import ClientSettings, TransactionManager
from client.spark import register
from demo.load import spark_session

LEASE_MS: Final = 3_000


@contextmanager
def spark_and_manager(around: Surroundings) -> Iterator[tuple[SparkSession, TransactionManager]]:
    """With both data sources registered. The surroundings have services."""
    services = around.services
    assert services is not None, "they were asked for"
    oracle = OurOracle(around.directory / "oracle", around.guard, services, lease_ms=LEASE_MS, code=around.code)
    oracle.start()
    try:
        zookeeper, root = oracle.load_arguments
        settings = ClientSettings(zookeeper, services.thrift, root)
        with spark_session(around.directory / "spark.log") as session, TransactionManager.connect(settings) as manager:
            register(session)
            session.dataSource.register(PlainSource)
            yield session, manager
    finally:
        oracle.stop()
