"""ZooKeeper and gateway speak TLS and let nobody in without a certificate: oracle, REST, programs, commands."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from access.services import GATEWAY, ZOOKEEPER, TlsFiles
from client import ClientSettings, StoreUnavailable, TransactionManager
from client.connection.services import store_of
from client.spark import KeyColumn, TableMapping, ValueColumn, create_table
from lease import CoordinatorUnavailable
from lease.zookeeper import ZooKeeperCoordinator
from store import Family
from tests.conftest import Services
from tests.integration.command_processes import Command
from tests.integration.oracle_processes import OracleWithRest
from tests.integration.test_rest import until_status

pytestmark = pytest.mark.integration

WAIT_SECONDS_MAX = 120.0


@pytest.fixture
def manager(secured_oracle: OracleWithRest, secured_settings: ClientSettings) -> Iterator[TransactionManager]:
    with TransactionManager.connect(secured_settings) as manager:
        yield manager


@pytest.fixture
def table(manager: TransactionManager) -> Iterator[str]:
    name = f"secured_{uuid.uuid4().hex[:8]}"
    create_table(manager, TableMapping(name, ("k",), (KeyColumn("k", "bigint"), ValueColumn("v", "bigint"))))
    yield name
    manager.drop_table(name)


def test_programs_rest_and_commands_reach_the_tables(
    secured: Services,
    secured_settings: ClientSettings,
    secured_oracle: OracleWithRest,
    manager: TransactionManager,
    table: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with manager.transaction() as transaction:
        transaction.put(table, b"alice", {b"f:balance": b"70"})
    until_status(secured_oracle.client, "GET", "/v1/health/ready", 200)
    at = secured_oracle.client.post("/v1/oracle/snapshot").json()["snapshot"]
    row = secured_oracle.client.get(f"/v1/snapshots/{at}/tables/{table}/rows/alice")
    assert row.json()["values"] == {"f:balance": "70"}
    for service in (GATEWAY, ZOOKEEPER):
        for name, path in secured.tls.named().items():
            monkeypatch.setenv(TlsFiles.variable(service, name), path)
    assert Command(secured_settings, "table").done("describe", table)["table"] == table


def test_without_the_certificate_nobody_gets_past_the_gateways_door(
    secured_settings: ClientSettings, manager: TransactionManager, table: str
) -> None:
    uncertified = replace(secured_settings, thrift_tls_certificate_file="", thrift_tls_key_file="", deadline_ms=500)
    with TransactionManager.connect(uncertified) as other, pytest.raises(StoreUnavailable) as caught:
        other.snapshot(at=manager.snapshot().timestamp).get(table, b"alice")
    assert secured_settings.thrift in str(caught.value)
    with pytest.raises(CoordinatorUnavailable, match="its certificate is not accepted"):  # the system's authorities'
        ZooKeeperCoordinator(secured_settings.zookeeper, connect_timeout_ms=1_000)


def test_a_table_of_several_regions_is_made_behind_tls_and_by_nobody_without_the_certificate(
    secured_settings: ClientSettings, secured_thrift2: str, manager: TransactionManager
) -> None:
    name, settings = f"secured_{uuid.uuid4().hex[:8]}", replace(secured_settings, thrift2=secured_thrift2)
    with TransactionManager.connect(settings) as other:
        other.create_table(name, ["f"], split_keys=[b"m"])
    assert [part.start for part in manager.store.regions(name)] == [b"", b"m"]
    manager.drop_table(name)
    uncertified = replace(settings, thrift_tls_certificate_file="", thrift_tls_key_file="", deadline_ms=500)
    with closing(store_of(uncertified)) as store, pytest.raises(StoreUnavailable) as caught:
        store.create_table(name, [Family("f")], [b"m"])
    assert secured_thrift2 in str(caught.value)
    assert name not in manager.store.table_names()


def test_an_oracle_says_what_is_wrong_with_its_files_and_does_not_start(
    secured: Services, secured_settings: ClientSettings
) -> None:
    command = [
        sys.executable,
        "-m",
        "tso",
        "serve",
        "--zookeeper",
        secured_settings.zookeeper,
        "--root",
        secured_settings.root,
    ]
    for options, words in (
        (["--thrift-tls-authority-file", "/nowhere"], "authority /nowhere: No such file or directory"),
        (["--thrift-tls-key-file", "k"], "a key without its certificate"),
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
