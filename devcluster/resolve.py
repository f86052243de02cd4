"""Fetching exactly the listed jars with an ordinary client: Maven where it is present, otherwise the Ivy in pyspark.

The clients read a company's own mirror settings (Maven: ``~/.m2/settings.xml``; Ivy: ``~/.ivy2/ivysettings.xml``), so no
host is named here. Invariant: what a client brings is not trusted; who calls ``fetch`` checks every file.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from xml.etree import ElementTree

from devcluster.artifacts import Artifact
from devcluster.errors import DiskFull, JarClientMissing, JarFetchFailed, JarsUnreachable
from devcluster.settings import Progress, Step

DEPENDENCY_PLUGIN_VERSION = "3.6.1"
OUTPUT_LINES_KEPT = 400
SHOWN_LINES_MAX = 5
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_UNREACHABLE = re.compile(
    r"UnknownHost|Unknown host|Name or service not known|Temporary failure in name resolution|Network is unreachable"
    r"|No route to host|Connection refused|Connection reset|[Tt]imed out|Server access error|SERVER ERROR|HOST NOT FOUND"
    r"|Host .* not found|Connect to .* failed|No address associated|Could not transfer"
)


class Client(Protocol):
    """One way to fetch jars. ``done`` finds, in a line of output, which jar has just come."""

    name: str
    settings_hint: str
    done: re.Pattern[str]

    def command(self, artifacts: Sequence[Artifact], work: Path, *, fresh: bool) -> list[str]:
        """Write the build description into ``work``; the command that fetches into ``work/out``.

        ``fresh`` keeps the client from taking anything out of its own cache.
        """


@dataclass(frozen=True, slots=True)
class MavenClient:
    """Maven's dependency plugin, which copies single artifacts without their dependencies."""

    executable: str
    name: str = "Maven"
    settings_hint: str = "~/.m2/settings.xml"
    done: re.Pattern[str] = re.compile(r"(?:Downloaded from \S+: \S+/|Copying )([^/\s]+\.jar)")

    def command(self, artifacts: Sequence[Artifact], work: Path, *, fresh: bool) -> list[str]:
        """See ``Client``."""
        description = work / "pom.xml"
        description.write_bytes(maven_description(artifacts, work / "out"))
        own_repository = [f"-Dmaven.repo.local={work / 'repository'}"] if fresh else []
        return [self.executable, "-B", "-f", str(description), *own_repository, "dependency:copy"]


@dataclass(frozen=True, slots=True)
class IvyClient:
    """Ivy, which Spark brings along among its own jars."""

    java: Path
    jar_directory: Path
    name: str = "Ivy (from pyspark)"
    settings_hint: str = "~/.ivy2/ivysettings.xml"
    done: re.Pattern[str] = re.compile(r"\[(?:SUCCESSFUL|NOT REQUIRED)\s*\] (\S+\.jar)")

    def command(self, artifacts: Sequence[Artifact], work: Path, *, fresh: bool) -> list[str]:
        """See ``Client``."""
        description = work / "ivy.xml"
        description.write_bytes(ivy_description(artifacts))
        settings = Path.home() / ".ivy2" / "ivysettings.xml"
        own_settings = ["-settings", str(settings)] if settings.is_file() else []
        own_cache = ["-cache", str(work / "cache")] if fresh else []
        pattern = f"{work / 'out'}/[artifact]-[revision](-[classifier]).[ext]"
        command = [str(self.java), "-cp", f"{self.jar_directory}/*", "org.apache.ivy.Main", *own_settings, *own_cache]
        return [*command, "-ivy", str(description), "-retrieve", pattern]


def maven_description(artifacts: Iterable[Artifact], out: Path) -> bytes:
    """A pom.xml whose ``dependency:copy`` puts exactly ``artifacts`` into ``out``."""
    project = ElementTree.Element("project")
    own = {"modelVersion": "4.0.0", "groupId": "pythia", "artifactId": "jars", "version": "1", "packaging": "pom"}
    _add_texts(project, own)
    plugin = ElementTree.SubElement(ElementTree.SubElement(ElementTree.SubElement(project, "build"), "plugins"), "plugin")
    plugin_name = {"groupId": "org.apache.maven.plugins", "artifactId": "maven-dependency-plugin"}
    _add_texts(plugin, plugin_name | {"version": DEPENDENCY_PLUGIN_VERSION})
    configuration = ElementTree.SubElement(plugin, "configuration")
    _add_texts(configuration, {"outputDirectory": str(out)})
    items = ElementTree.SubElement(configuration, "artifactItems")
    for artifact in artifacts:
        parts = {"groupId": artifact.group, "artifactId": artifact.name, "version": artifact.version, "type": "jar"}
        classifier = {"classifier": artifact.classifier} if artifact.classifier else {}
        _add_texts(ElementTree.SubElement(items, "artifactItem"), parts | classifier)
    return ElementTree.tostring(project, encoding="utf-8", xml_declaration=True)


def ivy_description(artifacts: Iterable[Artifact]) -> bytes:
    """An ivy.xml that asks for exactly ``artifacts``, without their dependencies."""
    ElementTree.register_namespace("m", "http://ant.apache.org/ivy/maven")
    module = ElementTree.Element("ivy-module", {"version": "2.0"})
    ElementTree.SubElement(module, "info", {"organisation": "pythia", "module": "jars"})
    ElementTree.SubElement(ElementTree.SubElement(module, "configurations"), "conf", {"name": "default"})
    dependencies = ElementTree.SubElement(module, "dependencies")
    for artifact in artifacts:
        wanted = {"org": artifact.group, "name": artifact.name, "rev": artifact.version}
        how = {"transitive": "false", "conf": "default->default"}
        dependency = ElementTree.SubElement(dependencies, "dependency", wanted | how)
        parts = {"name": artifact.name, "type": "jar", "ext": "jar"}
        classifier = {"{http://ant.apache.org/ivy/maven}classifier": artifact.classifier} if artifact.classifier else {}
        ElementTree.SubElement(dependency, "artifact", parts | classifier)
    return ElementTree.tostring(module, encoding="utf-8", xml_declaration=True)


def _add_texts(parent: ElementTree.Element, texts: dict[str, str]) -> None:
    for tag, text in texts.items():
        ElementTree.SubElement(parent, tag).text = text


def find_client(java: Path) -> Client:
    """The client to fetch jars with.

    Raises:
        JarClientMissing: neither Maven nor pyspark is installed.
    """
    maven = shutil.which("mvn")
    if maven is not None:
        return MavenClient(maven)
    spark = importlib.util.find_spec("pyspark")
    for place in (spark.submodule_search_locations or []) if spark else []:
        if any(Path(place, "jars").glob("ivy-*.jar")):
            return IvyClient(java, Path(place, "jars"))
    raise JarClientMissing(
        "the HBase jars must be fetched once, and there is no client for it: install Maven (the mvn command), "
        "or pyspark in this environment, whose Ivy does it too (pip install pyspark)"
    )


def fetch(
    client: Client,
    artifacts: Sequence[Artifact],
    work: Path,
    java: Path,
    *,
    fresh: bool,
    timeout_seconds: float,
    progress: Progress,
) -> Path:
    """Fetch ``artifacts`` into a directory below ``work`` and return it; files are as the client left them, unchecked.

    Raises:
        JarsUnreachable: no repository answered.
        JarFetchFailed: the client failed otherwise, or took longer than ``timeout_seconds``.
        DiskFull: it found no room.
        OSError: the build description cannot be written.
    """
    out = work / "out"
    out.mkdir(parents=True)
    command = client.command(artifacts, work, fresh=fresh)
    environment = os.environ | {"JAVA_HOME": str(java.resolve().parent.parent)}
    outcome = _run(command, environment, client, len(artifacts), timeout_seconds, progress)
    if outcome.timed_out:
        raise JarFetchFailed(f"{client.name} was stopped after {timeout_seconds:.0f} s without all the jars; try again")
    if outcome.code != 0:
        raise explain_failure(client, outcome.lines)
    return out


@dataclass(frozen=True, slots=True)
class _Outcome:
    code: int
    lines: tuple[str, ...]
    timed_out: bool


def _run(
    command: list[str],
    environment: dict[str, str],
    client: Client,
    total: int,
    timeout_seconds: float,
    progress: Progress,
) -> _Outcome:
    lines: deque[str] = deque(maxlen=OUTPUT_LINES_KEPT)
    arrived: set[str] = set()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        start_new_session=True,
    )
    expired = threading.Event()
    timer = threading.Timer(timeout_seconds, lambda: (expired.set(), _end_group(process)))
    timer.start()
    try:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                lines.append(line.rstrip())
                arrived.update(client.done.findall(line))
                progress(Step(f"fetching the HBase jars with {client.name}", min(len(arrived), total), total))
        return _Outcome(process.wait(), tuple(lines), expired.is_set())
    finally:
        timer.cancel()
        _end_group(process)
        process.wait()


def _end_group(process: subprocess.Popen[str]) -> None:
    """End the client and what it started, which share its session; a client that has been waited for is left alone."""
    if process.returncode is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def explain_failure(client: Client, lines: Sequence[str]) -> JarsUnreachable | JarFetchFailed | DiskFull:
    """What the output of a failed client means."""
    text = "\n".join(lines)
    telling = [line for line in lines if re.search(r"ERROR|WARN|FAILED|UNRESOLVED|Exception", line)] or list(lines)
    shown = "\n  ".join(line[:300] for line in telling[-SHOWN_LINES_MAX:])
    if _FULL.search(text):
        return DiskFull(f"{client.name} found no room on the disk for the HBase jars; make room and try again")
    if found := _UNREACHABLE.search(text):
        return JarsUnreachable(
            f"{client.name} reached no repository for the HBase jars ({found.group(0)}): check the network, or name your "
            f"mirror in {client.settings_hint}. It said:\n  {shown}"
        )
    return JarFetchFailed(f"{client.name} could not fetch the HBase jars. It said:\n  {shown}")
