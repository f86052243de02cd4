"""A real Spark session that knows where the shared oracle, ZooKeeper and HBase are."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from client import ClientSettings, TransactionManager
from client.spark import KeyColumn, TableMapping, ValueColumn, create_table, record_batches, register
from tests.spark_jobs.session import session


@pytest.fixture(scope="session")
def spark(oracle: ClientSettings) -> Iterator[SparkSession]:
    """``pythia`` is registered in it."""
    with session(oracle, log_level="WARN") as made:
        register(made)
        yield made


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


def counts_of(manager: TransactionManager, table: str) -> dict[int, int]:
    """What such a table has now, each row once."""
    batches = record_batches(manager.snapshot(), counts_mapping(table))
    found = [(row["k"], row["v"]) for batch in batches for row in batch.to_pylist()]
    values = dict(found)
    assert len(values) == len(found)
    return values
