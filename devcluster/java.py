"""Finding a Java that can run the cluster: JAVA_HOME where it is set, otherwise the one on PATH; where that is too new,
which Spark takes it for all the same, one that is installed beside it.

Invariant: a path that ``find_java`` returns has answered ``-version`` with a version that HBase runs on.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from devcluster.errors import JavaMissing, JavaTooNew, JavaTooOld

JAVA_VERSION_MIN = 17
JAVA_VERSION_MAX = 22
"""Hadoop's classes, which HBase's are built on, ask who their caller is in a way that Java refuses from 23 on."""
INSTALLED = Path("/usr/lib/jvm")
"""Where packages put them, one in a directory each."""
VERSION_TIMEOUT_SECONDS = 30.0
SAID_CHARACTERS_MAX = 400
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def find_java() -> Path:
    """Path of a Java executable of a version from ``JAVA_VERSION_MIN`` to ``JAVA_VERSION_MAX``.

    Raises:
        JavaMissing: there is none, or it does not run.
        JavaTooOld: there is one, of an older version.
        JavaTooNew: there are newer ones alone.
    """
    path = _candidate()
    version = _version(path)
    if JAVA_VERSION_MIN <= version <= JAVA_VERSION_MAX:
        return path
    other = _beside(path)
    if version < JAVA_VERSION_MIN:
        way = f"install it (for example openjdk-{JAVA_VERSION_MIN}) or point JAVA_HOME at it"
        if other is not None:  # which Spark would not find by itself
            way = f"point JAVA_HOME at {other.parents[1]}, where there is one"
        raise JavaTooOld(f"Java {version} found at {path}, but Java {JAVA_VERSION_MIN} or newer is needed; {way}")
    if other is not None:
        return other
    raise JavaTooNew(
        f"Java {version} found at {path}, but HBase runs on Java {JAVA_VERSION_MIN} to {JAVA_VERSION_MAX}; "
        f"install one beside it (for example openjdk-{JAVA_VERSION_MIN}), which is found, or point JAVA_HOME at one"
    )


def major_version(text: str, path: Path) -> int:
    """Major version in what ``java -version`` printed (8 for ``1.8.0``).

    Raises:
        JavaMissing: the text holds no version.
    """
    found = _VERSION.search(text)
    if found is None:
        said = " / ".join(text.strip()[:SAID_CHARACTERS_MAX].splitlines()) or "nothing"
        raise JavaMissing(
            f"{path} does not answer like a Java, but says: {said}; point JAVA_HOME at Java {JAVA_VERSION_MIN} or "
            "newer, or correct JDK_JAVA_OPTIONS or JAVA_TOOL_OPTIONS where they are what it complains about"
        )
    return int(found.group(1))


def _candidate() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        path = Path(home) / "bin" / "java"
        if not os.access(path, os.X_OK):
            raise JavaMissing(f"JAVA_HOME is {home}, but there is no bin/java in it; correct JAVA_HOME or unset it")
        return path
    found = shutil.which("java")
    if found is None:
        raise JavaMissing(
            f"no Java found: install Java {JAVA_VERSION_MIN} or newer (for example openjdk-{JAVA_VERSION_MIN}), "
            "or point JAVA_HOME at one"
        )
    return Path(found)


def _beside(path: Path) -> Path | None:
    """The first of the others, in the order of their names, that HBase runs on."""
    for installed in dict.fromkeys((INSTALLED, path.resolve().parent.parent.parent)):
        for other in sorted(installed.glob("*/bin/java")):
            with contextlib.suppress(JavaMissing):
                if JAVA_VERSION_MIN <= _version(other) <= JAVA_VERSION_MAX:
                    return other
    return None


def _version(path: Path) -> int:
    return major_version(_version_text(path), path)


def _version_text(path: Path) -> str:
    try:
        answer = subprocess.run(
            [str(path), "-version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaMissing(f"{path} does not run ({error}); point JAVA_HOME at Java {JAVA_VERSION_MIN}") from error
    return answer.stdout + answer.stderr
