"""Finding a Java that can run the cluster: JAVA_HOME where it is set, otherwise the one on PATH.

Invariant: a path that ``find_java`` returns has answered ``-version`` with a version that is new enough.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from devcluster.errors import JavaMissing, JavaTooOld

JAVA_VERSION_MIN = 17
VERSION_TIMEOUT_SECONDS = 30.0
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def find_java() -> Path:
    """Path of a Java executable of version 17 or newer.

    Raises:
        JavaMissing: there is none, or it does not run.
        JavaTooOld: there is one, of an older version.
    """
    path = _candidate()
    version = major_version(_version_text(path), path)
    if version < JAVA_VERSION_MIN:
        raise JavaTooOld(
            f"Java {version} found at {path}, but Java {JAVA_VERSION_MIN} or newer is needed; "
            f"install it (for example openjdk-{JAVA_VERSION_MIN}) or point JAVA_HOME at it"
        )
    return path


def major_version(text: str, path: Path) -> int:
    """Major version in what ``java -version`` printed (8 for ``1.8.0``).

    Raises:
        JavaMissing: the text holds no version.
    """
    found = _VERSION.search(text)
    if found is None:
        raise JavaMissing(f"{path} does not answer like a Java; point JAVA_HOME at Java {JAVA_VERSION_MIN} or newer")
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


def _version_text(path: Path) -> str:
    try:
        answer = subprocess.run(
            [str(path), "-version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaMissing(f"{path} does not run ({error}); point JAVA_HOME at Java {JAVA_VERSION_MIN}") from error
    return answer.stdout + answer.stderr
