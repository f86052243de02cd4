"""Fetching exactly the listed jars with an ordinary client: Maven where it is present, otherwise the Ivy in pyspark.

The clients read a company's own mirror settings (Maven: ``~/.m2/settings.xml``; Ivy: ``~/.ivy2/ivysettings.xml``), so
no host is named here. Invariant: what a client brings is not trusted; who calls ``fetch`` checks every file.
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
OUT = "out"
OUTPUT_LINES_KEPT = 400
SHOWN_LINES_MAX = 3
SHOWN_LINE_CHARACTERS_MAX = 400
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_UNREACHABLE = re.compile(
    r"UnknownHost|Unknown host|Name or service not known|Temporary failure in name resolution|Network is unreachable"
    r"|No route to host|Connection refused|Connection reset|[Tt]imed out|Server access error|SERVER ERROR"
    r"|HOST NOT FOUND|Host .* not found|Connect to .* failed|No address associated|Could not transfer"
)
_TELLING = re.compile(r"ERROR|FAILED|UNRESOLVED|not found|Exception")

Stages = tuple[tuple[str, re.Pattern[str]], ...]


class Client(Protocol):
    """One way to fetch jars."""

    @property
    def name(self) -> str:
        """What to call it."""

    @property
    def settings_hint(self) -> str:
        """Where its user names a mirror."""

    @property
    def stages(self) -> Stages:
        """What it does with each jar, and how a line of its output tells for which jar it has just done so."""

    def command(self, artifacts: Sequence[Artifact], work: Path, *, fresh: bool) -> list[str]:
        """Write the build description into ``work``; the command that fetches into ``work / OUT``; it is run
        in ``work``.

        ``fresh`` keeps the client from taking anything out of its own cache.
        """


@dataclass(frozen=True, slots=True)
class MavenClient:
    """Maven's dependency plugin, which copies single artifacts without their dependencies."""

    executable: str
    name: str = "Maven"
    settings_hint: str = "~/.m2/settings.xml"
    stages: Stages = (("fetching", re.compile(r"(?:Downloaded from \S+: \S+/|Copying )([^/\s]+\.jar)")),)

    def command(self, artifacts: Sequence[Artifact], work: Path, *, fresh: bool) -> list[str]:
        """See ``Client``."""
        (work / "pom.xml").write_bytes(maven_description(artifacts))
        own_repository = [f"-Dmaven.repo.local={work / 'repository'}"] if fresh else []
        goal = f"org.apache.maven.plugins:maven-dependency-plugin:{DEPENDENCY_PLUGIN_VERSION}:copy"
        return [self.executable, "-B", *own_repository, goal]


@dataclass(frozen=True, slots=True)
class IvyClient:
    """Ivy, which Spark brings along among its own jars."""

    java: Path
    jar_directory: Path
    name: str = "Ivy (from pyspark)"
    settings_hint: str = "~/.ivy2/ivysettings.xml"
    stages: Stages = (
        ("finding", re.compile(r"found (\S+#\S+;\S+) in ")),
        ("fetching", re.compile(r"\[(?:SUCCESSFUL|NOT REQUIRED)\s*\] (\S+\.jar)")),
    )

    def command(self, artifacts: Sequence[Artifact], work: Path, *, fresh: bool) -> list[str]:
        """See ``Client``."""
        (work / "ivy.xml").write_bytes(ivy_description(artifacts))
        settings = Path.home() / ".ivy2" / "ivysettings.xml"
        own_settings = ["-settings", str(settings)] if settings.is_file() else []
        own_cache = ["-cache", "cache"] if fresh else []
        pattern = f"{OUT}/[artifact]-[revision](-[classifier]).[ext]"
        command = [str(self.java), "-cp", f"{self.jar_directory}/*", "org.apache.ivy.Main", *own_settings, *own_cache]
        return [*command, "-ivy", "ivy.xml", "-retrieve", pattern]


def maven_description(artifacts: Iterable[Artifact]) -> bytes:
    """A pom.xml with which the plugin's ``copy`` puts exactly ``artifacts`` into ``OUT``."""
    project = ElementTree.Element("project")
    own = {"modelVersion": "4.0.0", "groupId": "pythia", "artifactId": "jars", "version": "1", "packaging": "pom"}
    _add_texts(project, own)
    plugin = ElementTree.SubElement(
        ElementTree.SubElement(ElementTree.SubElement(project, "build"), "plugins"), "plugin"
    )
    plugin_name = {"groupId": "org.apache.maven.plugins", "artifactId": "maven-dependency-plugin"}
    _add_texts(plugin, plugin_name | {"version": DEPENDENCY_PLUGIN_VERSION})
    configuration = ElementTree.SubElement(plugin, "configuration")
    _add_texts(configuration, {"outputDirectory": f"${{project.basedir}}/{OUT}"})
    items = ElementTree.SubElement(configuration, "artifactItems")
    for artifact in artifacts:
        parts = {"groupId": artifact.group, "artifactId": artifact.name, "version": artifact.version, "type": "jar"}
        classifier = {"classifier": artifact.classifier} if artifact.classifier else {}
        _add_texts(ElementTree.SubElement(items, "artifactItem"), parts | classifier)
    text: bytes = ElementTree.tostring(project, encoding="utf-8", xml_declaration=True)
    return text


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
    text: bytes = ElementTree.tostring(module, encoding="utf-8", xml_declaration=True)
    return text


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
        "the jars must be fetched once, and there is no client for it: install Maven (the mvn command), "
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
    out = work / OUT
    out.mkdir(parents=True)
    command = client.command(artifacts, work, fresh=fresh)
    environment = os.environ | {"JAVA_HOME": str(java.resolve().parent.parent)}
    outcome = _run(command, work, environment, client, len(artifacts), timeout_seconds, progress)
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
    work: Path,
    environment: dict[str, str],
    client: Client,
    total: int,
    timeout_seconds: float,
    progress: Progress,
) -> _Outcome:
    lines: deque[str] = deque(maxlen=OUTPUT_LINES_KEPT)
    seen: dict[str, set[str]] = {verb: set() for verb, _ in client.stages}
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        cwd=work,
        start_new_session=True,
    )
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        _end_group(process)

    timer = threading.Timer(timeout_seconds, expire)
    timer.start()
    try:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                lines.append(line.rstrip())
                for verb, pattern in client.stages:
                    if found := pattern.search(line):
                        seen[verb].add(found.group(1))
                        done = min(len(seen[verb]), total)
                        progress(Step(f"{verb} the jars with {client.name}", done, total))
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
    if _FULL.search(text):
        return DiskFull(f"{client.name} found no room on the disk for the jars; make room and try again")
    if _UNREACHABLE.search(text):
        return JarsUnreachable(
            f"{client.name} reached no repository for the jars: check the network, or name your mirror in "
            f"{client.settings_hint}. It said: {_shown(lines, _UNREACHABLE)}"
        )
    return JarFetchFailed(f"{client.name} could not fetch the jars. It said: {_shown(lines, _TELLING)}")


def _shown(lines: Sequence[str], pattern: re.Pattern[str]) -> str:
    """The first few lines that the pattern finds, as the ones after them are mostly about the client itself."""
    found = list(dict.fromkeys(line.strip() for line in lines if pattern.search(line)))
    return "\n  ".join(line[:SHOWN_LINE_CHARACTERS_MAX] for line in found[:SHOWN_LINES_MAX]) or "(nothing)"
