"""Omid's jars, fetched once and checked, and the driver, compiled anew for each run by the compiler among them."""

from __future__ import annotations

import subprocess
from importlib import resources
from pathlib import Path

from benchmarks.peer.configuration import Program
from benchmarks.sides import SideError
from devcluster import Progress, Step
from devcluster.artifacts import committed_list
from devcluster.jars import ensure_listed
from devcluster.java import find_java
from devcluster.resolve import find_client

FETCH_SECONDS_MAX = 1_200.0
COMPILE_SECONDS_MAX = 120.0
COMPILER_HEAP_MEBIBYTES = 256
COMPILER = "org.eclipse.jdt.internal.compiler.batch.Main"
SHOWN_CHARACTERS_MAX = 2_000
PACKAGE = "benchmarks.peer"


def install(directory: Path, progress: Progress) -> Program:
    """Everything the peer's processes are started from, with the compiled driver below ``directory``.

    Raises:
        DevClusterError: no Java, no client to fetch the jars with, or they cannot be fetched; it says what to do.
        SideError: the driver does not compile.
    """
    java = find_java()
    jars = ensure_listed(committed_list(PACKAGE), lambda: find_client(java), java, FETCH_SECONDS_MAX, progress)
    progress(Step("compiling the peer's driver"))
    return Program(java, (_compile(java, jars, directory), *jars))


def _compile(java: Path, jars: tuple[Path, ...], directory: Path) -> Path:
    classes = directory / "classes"
    class_path = ":".join(map(str, jars))
    compiler = [str(java), f"-Xmx{COMPILER_HEAP_MEBIBYTES}m", "-XX:-UsePerfData", "-cp", class_path, COMPILER]
    options = ["-17", "-proc:none", "-encoding", "UTF-8", "-cp", class_path, "-d", str(classes)]
    with resources.as_file(resources.files(PACKAGE).joinpath("java")) as sources:
        files = sorted(map(str, sources.glob("*.java")))
        answer = subprocess.run(
            [*compiler, *options, *files],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMPILE_SECONDS_MAX,
            check=False,
        )
    if answer.returncode != 0:
        raise SideError(
            f"the peer's driver does not compile:\n{(answer.stdout + answer.stderr)[:SHOWN_CHARACTERS_MAX]}"
        )
    return classes
