"""What it takes to run a program of HBase's beside the cluster of the tests."""

from __future__ import annotations

import os
from pathlib import Path

from devcluster.configuration import class_path
from devcluster.jars import ensure_jars
from devcluster.java import find_java
from devcluster.servers import write_configuration
from devcluster.settings import ClusterSettings


def java_with_hbase(zookeeper: str, directory: Path) -> tuple[Path, dict[str, str]]:
    """A Java, and the environment by which it finds HBase's classes and, configured in ``directory``, that HBase."""
    settings, java = ClusterSettings(directory), find_java()
    jars = ensure_jars(java, settings.fetch_timeout_seconds, lambda step: None)
    write_configuration(directory, int(zookeeper.rpartition(":")[2]))
    return java, os.environ | {"CLASSPATH": class_path(directory, jars)}
