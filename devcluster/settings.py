"""What a caller chooses about a development cluster, and how progress is told.

Invariant: a ``ClusterSettings`` that exists is valid; its directory is absolute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

from devcluster.errors import InvalidSettings

LOOPBACK = "127.0.0.1"
PORT_MAX = 65_535
HEAP_MEBIBYTES_MIN = 256
HEAP_MEBIBYTES_MAX = 65_536
SECONDS_MAX = 7_200.0


@dataclass(frozen=True, slots=True)
class Step:
    """One step of progress: what is being done and, where it can be counted, how much of ``total`` (0 = unknown)."""

    text: str
    done: int = 0
    total: int = 0


Progress = Callable[[Step], None]


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Where a cluster lives and its limits. A port of 0 chooses a free one; ``thrift2_port`` of ``None``: there is no
    Thrift 2 gateway, which nothing needs but tables of several regions.

    ``fetch_timeout_seconds`` bounds one run of Maven or Ivy, ``ready_timeout_seconds`` the time from the start of the
    servers to the first put and get, ``stop_timeout_seconds`` a clean stop before it becomes a kill.
    """

    directory: Path
    zookeeper_port: int = 0
    thrift_port: int = 0
    hbase_heap_mebibytes: int = 1_024
    gateway_heap_mebibytes: int = 512
    ready_timeout_seconds: float = 120.0
    stop_timeout_seconds: float = 30.0
    fetch_timeout_seconds: float = 1_200.0
    thrift2_port: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "directory", Path(self.directory).expanduser().resolve())
        if ":" in str(self.directory) or not str(self.directory).isprintable():
            raise InvalidSettings(
                f"directory {str(self.directory)!r}: use a path without colons and control characters"
            )
        self._check_ports()
        for field in fields(self):
            if field.name.endswith("_heap_mebibytes"):
                _check_between(field.name, getattr(self, field.name), HEAP_MEBIBYTES_MIN, HEAP_MEBIBYTES_MAX)
            elif field.name.endswith("_seconds"):
                _check_between(field.name, getattr(self, field.name), 1.0, SECONDS_MAX)

    def _check_ports(self) -> None:
        _check_between("zookeeper_port", self.zookeeper_port, 0, PORT_MAX)
        _check_between("thrift_port", self.thrift_port, 0, PORT_MAX)
        _check_between("thrift2_port", self.thrift2_port or 0, 0, PORT_MAX)
        given = [port for port in (self.zookeeper_port, self.thrift_port, self.thrift2_port) if port]
        if len(set(given)) < len(given):
            raise InvalidSettings(
                f"ZooKeeper and Thrift cannot share port {max(given, key=given.count)}; give each its own"
            )


def _check_between(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        raise InvalidSettings(f"{name} is {value}; choose between {least} and {most}")
