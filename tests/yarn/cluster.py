"""Hadoop's YARN on loopback: a resource manager, and node managers that it takes for machines of their own.

``spark-submit --deploy-mode cluster`` has the driver, too, run on one of the machines, in a process that YARN starts
once more where it is lost. The machines have only what Spark brings to them, as in ``tests.spark_jobs.standalone``.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark

from devcluster.configuration import site_file
from devcluster.guard import Guard
from devcluster.java import find_java
from devcluster.ports import claim
from devcluster.settings import LOOPBACK
from drills.waiting import wait_until
from tests.listed_jars import fetched
from tests.spark_jobs.machines import (
    ARCHIVED_AS,
    HOSTS,
    JAVA_OPTIONS,
    PYTHON_PATH,
    archive_us,
    python_without_us,
    said,
    start,
    strike,
)
from tests.spark_jobs.processes import descendants

PLACE: Final = Path(__file__).parent
"""Of the list of the jars that it runs on, beside PySpark's."""
START_SECONDS_MAX: Final = 120.0
ATTEMPTS_MAX: Final = 4
"""How often YARN starts a driver."""
MACHINE_LOST_AFTER_MS: Final = 20_000
"""One of which nothing is heard for so long: then its driver is lost, too."""
DRIVER_LOST_AFTER_MS: Final = 180_000
"""One on a machine that is there; as long as it may take to start."""
_SPARK: Final = Path(pyspark.__file__).parent
_SERVER: Final = "org.apache.hadoop.yarn.server"
_LOG: Final = """rootLogger.level = info
rootLogger.appenderRef.output.ref = output
appender.output.type = Console
appender.output.name = output
appender.output.layout.type = PatternLayout
appender.output.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""


@dataclass(frozen=True)
class Yarn:
    """``python``: of each machine. ``archive``: the project, for them. ``nodes``: the node managers' processes."""

    folder: Path
    python: Path
    archive: Path
    nodes: Sequence[int]

    def submit(
        self, name: str, script: Path, arguments: Sequence[str], files: Sequence[Path], more: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        """Have YARN run a script as a driver, as docs/operations/spark-clusters.md says; ends with it.

        ``more``: settings of Spark. What it says is in ``folder / name / "log"``.
        """
        settings = {
            "spark.yarn.appMasterEnv.PYTHONPATH": PYTHON_PATH,
            "spark.executorEnv.PYTHONPATH": PYTHON_PATH,
            "spark.pyspark.python": str(self.python),
            "spark.yarn.appMasterEnv.PYSPARK_PYTHON": str(self.python),
            "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": LOOPBACK,
            "spark.executorEnv.SPARK_LOCAL_IP": LOOPBACK,
            "spark.ui.enabled": "false",
            "spark.yarn.stagingDir": str(self.folder / "staging"),
            "spark.yarn.jars": f"local:{_SPARK / 'jars'}/*",  # Spark itself is on the machines
            "spark.yarn.report.interval": "500ms",
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.executor.instances": "1",
            "spark.scheduler.minRegisteredResourcesRatio": "0",  # the driver goes on while it starts
            "spark.driver.extraJavaOptions": JAVA_OPTIONS,
            "spark.executor.extraJavaOptions": JAVA_OPTIONS,
            **more,
        }
        command = [str(_SPARK / "bin" / "spark-submit"), "--master", "yarn", "--deploy-mode", "cluster", "--name", name]
        command += ["--archives", f"{self.archive}#{ARCHIVED_AS}", "--files", ",".join(map(str, files))]
        for setting, value in settings.items():
            command += ["--conf", f"{setting}={value}"]
        environment = {
            "SPARK_HOME": str(_SPARK),
            "HADOOP_CONF_DIR": str(self.folder / "configuration"),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_SUBMIT_OPTS": JAVA_OPTIONS,
        }
        return start(self.folder / name, [*command, str(script), *arguments], environment)

    def node_of(self, driver: int) -> int:
        """The machine that a driver runs on."""
        return next(node for node in self.nodes if driver in descendants(node))

    def last_words(self) -> str:
        """Of all containers, and of those that submitted them."""
        logs = [*self.folder.glob("*/logs/*/*/std*"), *self.folder.glob("*/log")]
        return "\n".join(
            f"--- {log.relative_to(self.folder)}\n{log.read_text(errors='replace')[-3_000:]}" for log in logs
        )


@contextmanager
def running(folder: Path) -> Iterator[Yarn]:
    """A cluster that ends even where this process is killed. What it writes goes into ``folder``.

    Raises what ``fetched`` does.
    """
    java = find_java()
    jars = fetched(PLACE, java)
    python, archive = python_without_us(folder / "python"), folder / f"{ARCHIVED_AS}.tar.gz"
    archive_us(archive)
    common = _common(folder)
    _configure(folder / "configuration", common)
    with Guard() as guard, ExitStack() as ending:

        def started(name: str, service: str, settings: Mapping[str, str]) -> int:
            configuration = folder / f"{name}-configuration"
            _configure(configuration, {**common, **settings})
            path = os.pathsep.join([str(configuration), *map(str, jars), str(_SPARK / "jars" / "*")])
            options = [*JAVA_OPTIONS.split(), "-Xmx256m", "-Djava.net.preferIPv4Stack=true", "-XX:-UsePerfData"]
            environment = {"HADOOP_CONF_DIR": str(configuration), "JAVA_HOME": str(java.resolve().parent.parent)}
            process = start(folder / name, [str(java), *options, "-cp", path, f"{_SERVER}.{service}"], environment)
            ending.callback(process.wait)
            ending.callback(strike, process.pid, signal.SIGKILL)
            guard.watch_process(process.pid)
            return process.pid

        started("manager", "resourcemanager.ResourceManager", {})
        nodes = [started(host, "nodemanager.NodeManager", _of_a_node(host, folder / host)) for host in HOSTS]
        wait_until(
            lambda: said(folder / "manager").count("Node Transitioned from NEW to RUNNING") >= len(HOSTS),
            "the machines of YARN",
            START_SECONDS_MAX,
            lambda: "\n".join(said(folder / name)[-3_000:] for name in ("manager", *HOSTS)),
        )
        yield Yarn(folder, python, archive, nodes)


def hadoop_of_pyspark() -> str:
    """The version of the Hadoop whose clients PySpark brings."""
    (jar,) = (_SPARK / "jars").glob("hadoop-client-api-*.jar")
    return jar.stem.removeprefix("hadoop-client-api-")


def _common(folder: Path) -> dict[str, str]:
    """Where the resource manager is, and what is the same for all."""
    names = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
    return {f"yarn.resourcemanager.{name}": f"{LOOPBACK}:{claim(0, 'YARN', '--port')}" for name in names} | {
        "yarn.resourcemanager.hostname": LOOPBACK,
        "yarn.resourcemanager.bind-host": LOOPBACK,
        "yarn.resourcemanager.am.max-attempts": str(ATTEMPTS_MAX),
        "yarn.resourcemanager.scheduler.class": f"{_SERVER}.resourcemanager.scheduler.fifo.FifoScheduler",
        "yarn.resourcemanager.connect.max-wait.ms": "10000",  # what runs on machines ends without it
        "yarn.nm.liveness-monitor.expiry-interval-ms": str(MACHINE_LOST_AFTER_MS),
        "yarn.am.liveness-monitor.expiry-interval-ms": str(DRIVER_LOST_AFTER_MS),
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.nodemanager.resource.memory-mb": "65536",  # not what there is: what a test leaves is in nobody's way
        "yarn.nodemanager.resource.cpu-vcores": "64",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.enable": "false",
        "hadoop.tmp.dir": str(folder / "hadoop"),
    }


def _of_a_node(host: str, place: Path) -> dict[str, str]:
    names = ("address", "localizer.address", "collector-service.address", "webapp.address")
    return {f"yarn.nodemanager.{name}": f"{host}:0" for name in names} | {
        "yarn.nodemanager.hostname": host,
        "yarn.nodemanager.local-dirs": str(place / "local"),
        "yarn.nodemanager.log-dirs": str(place / "logs"),
    }


def _configure(folder: Path, settings: Mapping[str, str]) -> None:
    """Files for Hadoop."""
    folder.mkdir()
    (folder / "yarn-site.xml").write_bytes(site_file(settings))
    (folder / "core-site.xml").write_text("<configuration/>")
    (folder / "log4j2.properties").write_text(_LOG)
