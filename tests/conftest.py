"""The real services that integration tests share: one cluster a test run, brought up by the project's own devcluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import devcluster


@dataclass(frozen=True)
class Services:
    """Where the real ZooKeeper and the real HBase Thrift gateway listen, as ``host:port``."""

    zookeeper: str
    thrift: str


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    given = os.environ.get("PYTHIA_TEST_ZOOKEEPER"), os.environ.get("PYTHIA_TEST_THRIFT")
    if given[0] and given[1]:
        yield Services(zookeeper=given[0], thrift=given[1])
        return
    directory = tmp_path_factory.mktemp("cluster")
    cluster = devcluster.up(devcluster.ClusterSettings(directory=directory))
    try:
        yield Services(zookeeper=cluster.zookeeper, thrift=cluster.thrift)
    finally:
        devcluster.down(directory, wipe=True)
