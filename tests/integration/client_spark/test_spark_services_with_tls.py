"""Spark's tasks reach a gateway that speaks TLS by the files that their transaction or snapshot names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from client import ClientSettings, TransactionManager
from client.spark import create_table
from tests.integration.client_spark.conftest import counts_mapping

if TYPE_CHECKING:
    from tests.integration.oracle_processes import OracleWithRest

pytestmark = pytest.mark.integration


def test_tasks_find_the_files_by_the_handle(
    spark: SparkSession, secured_oracle: OracleWithRest, secured_settings: ClientSettings, table: str
) -> None:
    with TransactionManager.connect(secured_settings) as manager:
        create_table(manager, counts_mapping(table))
        with manager.transaction() as transaction:
            where = {"transaction": transaction.handle().to_json()}
            rows = spark.range(1_000).selectExpr("id AS k", "id * 2 AS v")
            rows.write.format("pythia").mode("append").options(table=table, **where).save()
        assert json.loads(where["transaction"])["settings"]["thrift_tls_key_file"]
        seen = {"snapshot": manager.snapshot().handle().to_json()}
        read = spark.read.format("pythia").options(table=table, **seen).load()
        assert read.selectExpr("count(*)", "sum(v)").collect() == [(1_000, 999_000)]
        manager.drop_table(table)
