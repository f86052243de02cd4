"""A real Spark session that knows where the shared oracle, ZooKeeper and HBase are."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from client import ClientSettings, TransactionManager
from client.spark import KeyColumn, TableMapping, ValueColumn, create_table, register

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def spark(oracle: ClientSettings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two cores, tasks tried up to three times, everything on the loopback interface; ``pythia`` is registered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]))
        builder = SparkSession.Builder().master("local[2,3]").appName("pythia tests")
        for name, value in {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "America/New_York",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.pythia.zookeeper": oracle.zookeeper,
            "spark.pythia.thrift": oracle.thrift,
            "spark.pythia.root": oracle.root,
        }.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        register(session)
        try:
            yield session
        finally:
            session.stop()


@pytest.fixture
def table() -> str:
    """A name for a table that nobody else uses."""
    return f"spark_{uuid.uuid4().hex[:12]}"


@pytest.fixture
def counts(manager: TransactionManager, table: str) -> str:
    """A table k → v, both ``bigint``."""
    create_table(manager, counts_mapping(table))
    return table


@pytest.fixture
def others(manager: TransactionManager, table: str) -> str:
    """Another one like ``counts``."""
    create_table(manager, counts_mapping(f"{table}_others"))
    return f"{table}_others"


def counts_mapping(table: str) -> TableMapping:
    return TableMapping(table, ("k",), (KeyColumn("k", "bigint"), ValueColumn("v", "bigint")))
