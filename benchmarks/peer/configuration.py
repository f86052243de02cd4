"""How Omid is set up: its settings as it ships them and as they do best here. Pure: values come in, texts come out.

Invariant: whatever is not named here is at Omid's own default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.sides import Latency
from devcluster.configuration import OPENING_OPTIONS

VERSION = "1.1.3"
SERVER_HEAP_MEBIBYTES = 3_072
"""Its conflict map has 100 million slots of 16 bytes, all of them allocated at the start: 1,526 MiB."""
DRIVER_HEAP_MEBIBYTES = 768
TOOL_HEAP_MEBIBYTES = 256
_MODULES = "org.apache.omid.tso"


@dataclass(frozen=True, slots=True)
class PeerConfiguration:
    """One setting of the server.

    ``batch_timer_ms``: after how long without a request an incomplete batch is written. ``batch_size``: events in a
    full batch. ``low_latency``: no batches at all, and the client itself writes the commit table.
    """

    name: str
    batch_timer_ms: int = 10
    batch_size: int = 25
    low_latency: bool = False

    def to_fields(self) -> dict[str, str | int | bool]:
        """For the report."""
        return {**asdict(self), "version": VERSION, "server_heap_mebibytes": SERVER_HEAP_MEBIBYTES}


DEFAULT = PeerConfiguration("default")
TIMER_1_MS = PeerConfiguration("timer 1 ms", batch_timer_ms=1)
LARGE_BATCHES = PeerConfiguration("timer 1 ms, batches of 500", batch_timer_ms=1, batch_size=500)
LOW_LATENCY = PeerConfiguration("low latency", low_latency=True)


@dataclass(frozen=True, slots=True)
class Tables:
    """The HBase tables of one server."""

    commits: str
    timestamps: str


def explained_by(configuration: PeerConfiguration, in_flight: int, begin: Latency | None) -> str | None:
    """What other than its speed explains the rate: its timer, where batches do not fill and half of a begin is wait."""
    if configuration.low_latency or in_flight >= configuration.batch_size or begin is None:
        return None
    if configuration.batch_timer_ms * 1_000 < begin.p50_us / 2:
        return None
    return f"its {configuration.batch_timer_ms} ms batch timer"


def server_settings(configuration: PeerConfiguration, port: int, tables: Tables | None) -> str:
    """omid-server-configuration.yml; without ``tables`` the server keeps no commits and its timestamps in memory."""
    settings: dict[str, str | int] = {
        "port": port,
        "batchPersistTimeoutInMs": configuration.batch_timer_ms,
        "batchSizePerCTWriter": configuration.batch_size,
        "lowLatency": str(configuration.low_latency).lower(),
    }
    if tables is None:
        settings |= {
            "timestampStoreModule": f"!!{_MODULES}.InMemoryTimestampStorageModule [ ]",
            "commitTableStoreModule": f"!!{_MODULES}.InMemoryCommitTableStorageModule [ ]",
            "leaseModule": f"!!{_MODULES}.LoopbackModule [ ]",
        }
    else:
        timestamps = f"{{tableName: {tables.timestamps}}}"
        storage = "org.apache.omid.timestamp.storage.DefaultHBaseTimestampStorageModule"
        committable = "org.apache.omid.committable.hbase.DefaultHBaseCommitTableStorageModule"
        settings |= {
            "timestampStoreModule": f"!!{storage} {timestamps}",
            "commitTableStoreModule": f"!!{committable} {{tableName: {tables.commits}}}",
            # The ordinary lease module binds the name of that table too, and must agree.
            "leaseModule": f"!!{_MODULES}.LoopbackModule {timestamps}",
        }
    return "".join(f"{name}: {value}\n" for name, value in settings.items())


def hbase_settings(zookeeper: str) -> Mapping[str, str]:
    """Where an HBase client looks; ``zookeeper`` is ``host:port``."""
    host, _, port = zookeeper.rpartition(":")
    return {"hbase.zookeeper.quorum": host, "hbase.zookeeper.property.clientPort": port}


@dataclass(frozen=True, slots=True)
class Program:
    """What every process of the peer is started from: a Java, and its class path less the settings."""

    java: Path
    class_path: tuple[Path, ...]

    def command(self, heap_mebibytes: int, settings: Path, main_class: str, *arguments: str) -> list[str]:
        """The command of one JVM; ``settings`` is the directory with its files of settings."""
        return [
            str(self.java),
            f"-Xmx{heap_mebibytes}m",
            "-Djava.net.preferIPv4Stack=true",
            f"-Djava.io.tmpdir={settings}",
            # Without it a JVM writes its counters into the system's directory for temporary files.
            "-XX:-UsePerfData",
            f"-XX:ErrorFile={settings / 'crash.log'}",
            *OPENING_OPTIONS,
            "-cp",
            _joined([settings, *self.class_path]),
            main_class,
            *arguments,
        ]


def _joined(places: Sequence[Path]) -> str:
    return ":".join(map(str, places))
