"""An installation whose gateway speaks TLS and lets nobody in without a certificate: oracle, REST, programs, Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import fields

import pytest
from pyspark.sql import SparkSession

from client import ClientSettings, InvalidSettings, TransactionManager
from client.spark import KeyColumn, TableMapping, ValueColumn, create_table
from store.hbase.tls_files import VARIABLES, TlsFiles
from tests.conftest import Services
from tests.integration.command_processes import Command
from tests.integration.oracle_processes import OracleWithRest
from tests.integration.test_rest import until_status

pytestmark = pytest.mark.integration

WAIT_SECONDS_MAX = 60.0


def flags(tls: TlsFiles) -> list[str]:
    named = {field.name: getattr(tls, field.name) for field in fields(tls)}
    return [part for name, path in named.items() if path for part in (f"--thrift-tls-{name.replace('_', '-')}", path)]


@pytest.fixture
def settings(secured: Services) -> ClientSettings:
    named = {f"thrift_tls_{field.name}": getattr(secured.tls, field.name) for field in fields(secured.tls)}
    return ClientSettings(secured.zookeeper, secured.thrift, f"/pythia-tls-{uuid.uuid4().hex[:8]}", **named)


@pytest.fixture
def serving(secured: Services, settings: ClientSettings) -> Iterator[OracleWithRest]:
    oracle = OracleWithRest("a", settings, *flags(secured.tls))
    try:
        oracle.until_primary()
        yield oracle
    finally:
        oracle.end()


@pytest.fixture
def manager(serving: OracleWithRest, settings: ClientSettings) -> Iterator[TransactionManager]:
    with TransactionManager.connect(settings) as manager:
        yield manager


@pytest.fixture
def table(manager: TransactionManager) -> Iterator[str]:
    name = f"secured_{uuid.uuid4().hex[:8]}"
    create_table(manager, TableMapping(name, ("k",), (KeyColumn("k", "bigint"), ValueColumn("v", "bigint"))))
    yield name
    manager.drop_table(name)


def test_programs_rest_and_commands_reach_the_tables(
    secured: Services,
    settings: ClientSettings,
    serving: OracleWithRest,
    manager: TransactionManager,
    table: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with manager.transaction() as transaction:
        transaction.put(table, b"alice", {b"d:balance": b"70"})
    until_status(serving.client, "GET", "/v1/health/ready", 200)
    at = serving.client.post("/v1/oracle/snapshot").json()["snapshot"]
    row = serving.client.get(f"/v1/snapshots/{at}/tables/{table}/rows/alice")
    assert row.json()["values"] == {"d:balance": "70"}
    for name, variable in VARIABLES.items():
        monkeypatch.setenv(variable, getattr(secured.tls, name))
    assert Command(settings, "table").done("describe", table)["table"] == table


def test_without_the_certificate_nobody_gets_past_the_gateways_door(
    settings: ClientSettings, serving: OracleWithRest, table: str
) -> None:
    refused = Command(settings, "table").refused("describe", table, code=3)
    assert settings.thrift in refused
    plain = settings.thrift.removeprefix("tls://")
    with pytest.raises(InvalidSettings, match="is for a gateway that speaks TLS"):
        ClientSettings(settings.zookeeper, plain, thrift_tls_authority_file=settings.thrift_tls_authority_file)


def test_an_oracle_says_what_is_wrong_with_its_files_and_does_not_start(
    secured: Services, settings: ClientSettings
) -> None:
    command = [sys.executable, "-m", "tso", "serve", "--zookeeper", settings.zookeeper, "--root", settings.root]
    for options, words in (
        (["--thrift-tls-authority-file", "/nowhere"], "authority /nowhere: No such file or directory"),
        (["--thrift-tls-key-file", "k"], "a key for the gateway without its certificate"),
    ):
        ended = subprocess.run(
            [*command, "--thrift", secured.thrift, *options],
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS_MAX,
            env={**os.environ, "PYTHONPATH": os.getcwd()},
        )
        assert ended.returncode == 2, ended.stderr
        assert words in ended.stderr
        assert "Traceback" not in ended.stderr


def test_a_spark_job_finds_the_files_by_its_transaction(
    spark: SparkSession, settings: ClientSettings, manager: TransactionManager, table: str
) -> None:
    with manager.transaction() as transaction:
        where = {"transaction": transaction.handle().to_json()}
        rows = spark.range(1_000).selectExpr("id AS k", "id * 2 AS v")
        rows.write.format("pythia").mode("append").options(table=table, **where).save()
    assert json.loads(where["transaction"])["settings"]["thrift_tls_authority_file"]
    seen = {"snapshot": manager.snapshot().handle().to_json()}
    read = spark.read.format("pythia").options(table=table, **seen).load()
    assert read.selectExpr("count(*)", "sum(v)").collect() == [(1_000, 999_000)]
