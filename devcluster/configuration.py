"""What the servers are told: HBase's settings and the command lines. Pure: values come in, texts come out.

Invariant: every listening socket these settings cause is on 127.0.0.1 unless the caller names another address, and
every JVM of a cluster carries its mark, by which a process is recognised before it is ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from devcluster.settings import LOOPBACK

Part = Literal["hbase", "gateway", "gateway2"]
PARTS: tuple[Part, ...] = ("hbase", "gateway", "gateway2")
"""In the order in which they start; a cluster has the last one, a Thrift 2 gateway, only where it was asked for."""

# ZooKeeper grants session timeouts from 2 to 20 ticks, so 2 s to 20 s.
TICK_MS = 1_000
ZOOKEEPER_CONNECTIONS_MAX = 1_000
# The gateway adds workers beyond these only once its queue is full, so this is how many connections it serves.
GATEWAY_WORKERS = 256
MEMORY_PIECE_BYTES = 256 * 1024
GATEWAY2_HEAP_MEBIBYTES = 256
STOP_HEAP_MEBIBYTES = 128
ZOOKEEPER_HEAP_MEBIBYTES = 128

_OPENED_PACKAGES = ("java.lang", "java.lang.reflect", "java.nio", "java.util", "sun.nio.ch", "jdk.internal.ref")
OPENING_OPTIONS = (
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED_PACKAGES),
    "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
)
"""What HBase's classes, server or client, reach into since Java 17 closes it."""


def hbase_settings(directory: Path, zookeeper_port: int) -> dict[str, str]:
    """HBase's settings for one JVM with master, region server and ZooKeeper, all data below ``directory``."""
    return _places(directory) | _loopback(zookeeper_port) | _limits()


def _places(directory: Path) -> dict[str, str]:
    return {
        # Not as_uri(): Hadoop takes the percent signs of an escaped path literally.
        "hbase.rootdir": f"file://{directory / 'data' / 'hbase'}",
        "hbase.zookeeper.property.dataDir": str(directory / "data" / "zookeeper"),
        "hbase.tmp.dir": str(directory / "tmp"),
        "hbase.unsafe.stream.capability.enforce": "false",
    }


def _loopback(zookeeper_port: int) -> dict[str, str]:
    return {
        "hbase.zookeeper.quorum": LOOPBACK,
        "hbase.zookeeper.property.clientPort": str(zookeeper_port),
        "hbase.zookeeper.property.clientPortAddress": LOOPBACK,
        "hbase.master.hostname": "localhost",
        "hbase.regionserver.hostname": "localhost",
        "hbase.master.ipc.address": LOOPBACK,
        "hbase.regionserver.ipc.address": LOOPBACK,
        # 0: HBase takes any free port and tells it to its clients through ZooKeeper.
        "hbase.master.port": "0",
        "hbase.regionserver.port": "0",
        "hbase.master.info.port": "-1",
        "hbase.regionserver.info.port": "-1",
        "hbase.regionserver.thrift.ipaddress": LOOPBACK,
    }


def _limits() -> dict[str, str]:
    return {
        "hbase.zookeeper.property.tickTime": str(TICK_MS),
        "hbase.zookeeper.property.maxClientCnxns": str(ZOOKEEPER_CONNECTIONS_MAX),
        "hbase.thrift.minWorkerThreads": str(GATEWAY_WORKERS),
        # One region server is all there will ever be: waiting for more would cost 4.5 s of every start.
        "hbase.master.wait.on.regionservers.mintostart": "1",
        "hbase.master.wait.on.regionservers.maxtostart": "1",
        "hbase.regionserver.msginterval": "500",
        # HBase gives its memstores 40 % of the heap, and its cache as much, however small the heap is: of a gigabyte
        # that leaves too little for all else it does, once both are full.
        "hfile.block.cache.size": "0.25",
        # What a family of a region holds in memory is taken in pieces of 2 MiB, and these are kept once it is flushed:
        # 300 families of small tables, as tests make them, filled the heap, and HBase collected garbage for seconds.
        # A cell that is larger than a quarter of a piece lies beside them, so that little of a piece stays empty.
        "hbase.hregion.memstore.mslab.chunksize": str(MEMORY_PIECE_BYTES),
        "hbase.hregion.memstore.mslab.max.allocation": str(MEMORY_PIECE_BYTES // 4),
    }


def site_file(settings: Mapping[str, str]) -> bytes:
    """``settings`` in the form of hbase-site.xml."""
    root = ElementTree.Element("configuration")
    for name, value in settings.items():
        entry = ElementTree.SubElement(root, "property")
        ElementTree.SubElement(entry, "name").text = name
        ElementTree.SubElement(entry, "value").text = value
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text


def mark(directory: Path) -> str:
    """The argument by which a JVM of the cluster in ``directory`` is recognised."""
    return f"-Dpythia.cluster={directory}"


def _java_command(java: Path, directory: Path, log: str, heap_mebibytes: int, options: Sequence[str]) -> list[str]:
    return [
        str(java),
        f"-Xmx{heap_mebibytes}m",
        *options,
        mark(directory),
        f"-Dpythia.log={directory / 'logs' / log}.log",
        f"-Djava.io.tmpdir={directory / 'tmp'}",
        "-Djava.net.preferIPv4Stack=true",
        # HBase goes on without the thread that found no memory, and what waits for that one waits for minutes.
        "-XX:+ExitOnOutOfMemoryError",
        # Without it a JVM writes its counters into the system's directory for temporary files.
        "-XX:-UsePerfData",
        f"-XX:ErrorFile={directory / 'logs' / log}-crash.log",
        *OPENING_OPTIONS,
    ]


def start_command(
    part: Part, java: Path, directory: Path, heap_mebibytes: int, thrift_port: int, thrift_host: str = LOOPBACK
) -> list[str]:
    """The command that runs one part of the cluster in the foreground. ``thrift_port``: where a gateway listens."""
    # ZooKeeper answers without waiting for the disk: a killed process loses nothing by it, and a busy disk of a shared
    # machine would else hold up leases for seconds.
    options = ["-Dzookeeper.forceSync=no"] if part == "hbase" else []
    command = _java_command(java, directory, part, heap_mebibytes, options)
    if part == "hbase":
        return [*command, "org.apache.hadoop.hbase.master.HMaster", "start"]
    listen = ["-p", str(thrift_port), "-b", thrift_host, "--infoport", "-1"]
    thrift = "thrift2" if part == "gateway2" else "thrift"
    return [*command, f"org.apache.hadoop.hbase.{thrift}.ThriftServer", "start", *listen]


def stop_command(java: Path, directory: Path) -> list[str]:
    """The command that asks HBase to close its regions and end.

    A SIGTERM does it too, but ends ZooKeeper first, whereupon the region server waits for it for 20 s.
    """
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    command = _java_command(java, directory, "stop", STOP_HEAP_MEBIBYTES, quick)
    return [*command, "org.apache.hadoop.hbase.master.HMaster", "stop", "--shutDownCluster"]


def class_path(directory: Path, jars: Sequence[Path]) -> str:
    """The settings first, then the jars in the order of the list."""
    return ":".join(map(str, (directory / "conf", *jars)))


def zookeeper_settings(data: Path, port: int, host: str = LOOPBACK) -> str:
    """zoo.cfg of a ZooKeeper apart from HBase's own, which the oracles have to themselves."""
    settings = {
        "dataDir": data,
        "clientPort": port,
        "clientPortAddress": host,
        "tickTime": TICK_MS,
        "maxClientCnxns": ZOOKEEPER_CONNECTIONS_MAX,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "srvr",
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def zookeeper_command(java: str, jars: Sequence[str], configuration: Path) -> list[str]:
    """The command that runs that ZooKeeper in the foreground."""
    # A killed process loses nothing that it gave the system, and a busy disk would else hold up leases for seconds.
    options = ["-Dzookeeper.forceSync=no", "-Djava.net.preferIPv4Stack=true", "-XX:-UsePerfData"]
    main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    return [java, f"-Xmx{ZOOKEEPER_HEAP_MEBIBYTES}m", *options, "-cp", ":".join(jars), main_class, str(configuration)]
