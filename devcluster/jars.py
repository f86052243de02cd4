"""The jars that a cluster runs: of the user's cache, filled once and checked at every use, or of another HBase.

Invariant: a file enters the cache only by a rename within one file system, after its sha256 was found right; a fetch
that is cut short leaves only a scratch directory, which the next one removes. One lock: one process fetches at a time.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from devcluster.artifacts import Artifact, committed_list, digest, not_matching
from devcluster.errors import DiskFull, InvalidSettings, JarMismatch, disk_errors
from devcluster.locks import file_lock
from devcluster.resolve import Client, fetch, find_client
from devcluster.settings import Progress, Step

FETCH_FREE_MEBIBYTES = 300
OTHER_JARS = "PYTHIA_HBASE_JARS"
"""The variable that names the directories of another HBase's jars, as many as a search path may hold."""
_OTHERS_NEEDED = ("hbase-server", "hbase-thrift", "zookeeper")
_SCRATCH_PREFIX = "fetch-"


def cache_home() -> Path:
    """``$XDG_CACHE_HOME/pythia``, or ``~/.cache/pythia``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pythia"


def jar_directory(artifacts: Sequence[Artifact]) -> Path:
    """Where the jars of this very list are kept."""
    return cache_home() / f"jars-{digest(artifacts)}"


def ensure_jars(java: Path, timeout_seconds: float, progress: Progress) -> tuple[Path, ...]:
    """The paths of the jars to run: another HBase's as they are, where one is named, and otherwise ``checked_jars``.

    Raises:
        InvalidSettings: see ``other_jars``; and what ``checked_jars`` raises.
    """
    others = other_jars()
    return checked_jars(java, timeout_seconds, progress) if others is None else others


def checked_jars(java: Path, timeout_seconds: float, progress: Progress) -> tuple[Path, ...]:
    """The paths of the committed list's jars, each checked, fetched first where that is needed.

    Raises:
        JarClientMissing, JarsUnreachable, JarFetchFailed, JarMismatch, DiskFull, Busy, UnusableDirectory:
            see ``errors``.
    """
    return ensure_listed(committed_list(), lambda: find_client(java), java, timeout_seconds, progress)


def other_jars() -> tuple[Path, ...] | None:
    """All jars in the directories that ``PYTHIA_HBASE_JARS`` names; ``None``: it names none.

    Raises:
        InvalidSettings: there is no jar in one of them, or they lack what a cluster runs.
    """
    named = os.environ.get(OTHER_JARS)
    if not named:
        return None
    found: list[Path] = []
    for directory in named.split(os.pathsep):
        jars = sorted(Path(directory).expanduser().resolve().glob("*.jar"))
        if not jars:
            raise InvalidSettings(
                f"{OTHER_JARS}: there is no jar in {directory!r}; name the directories of another HBase's jars, "
                f"with {os.pathsep!r} between them, or unset it"
            )
        found += jars
    names = [jar.name for jar in found]
    missing = [need for need in _OTHERS_NEEDED if not any(re.match(rf"{need}-\d", name) for name in names)]
    if missing:
        raise InvalidSettings(
            f"{OTHER_JARS}: no jar of {', '.join(missing)} among the {len(found)} in {named}; a cluster runs HBase's "
            "master, its Thrift gateway and ZooKeeper, with all that they need"
        )
    return tuple(found)


def ensure_listed(
    artifacts: Sequence[Artifact],
    choose_client: Callable[[], Client],
    java: Path,
    timeout_seconds: float,
    progress: Progress,
) -> tuple[Path, ...]:
    """As ``checked_jars``, for any list and client; the client is only chosen when something is to be fetched."""
    directory = jar_directory(artifacts)
    progress(Step("checking the jars"))
    with disk_errors(directory), file_lock(directory.with_suffix(".lock"), 2 * timeout_seconds):
        directory.mkdir(parents=True, exist_ok=True)
        missing = not_matching(artifacts, directory)
        if missing:
            check_free_space(directory, FETCH_FREE_MEBIBYTES)
            _fill(directory, missing, choose_client(), java, timeout_seconds, progress)
    return tuple(directory / artifact.file_name for artifact in artifacts)


def check_free_space(directory: Path, needed_mebibytes: int) -> None:
    """Refuse to begin what would end on a full disk.

    Raises:
        DiskFull: fewer than ``needed_mebibytes`` are free at ``directory``.
    """
    free_mebibytes = shutil.disk_usage(directory).free // 2**20
    if free_mebibytes < needed_mebibytes:
        raise DiskFull(
            f"{free_mebibytes} MiB free at {directory}, {needed_mebibytes} MiB needed; make room or choose another"
        )


def _fill(
    directory: Path,
    missing: Sequence[Artifact],
    client: Client,
    java: Path,
    timeout_seconds: float,
    progress: Progress,
) -> None:
    """Fetch what is missing; what then is still wrong once more, past the client's own cache, which may be damaged."""
    for fresh in (False, True):
        missing = _fetch_once(directory, missing, client, java, timeout_seconds, progress, fresh=fresh)
        if not missing:
            return
    names = ", ".join(artifact.coordinates for artifact in missing)
    raise JarMismatch(
        f"freshly fetched, but not the jar whose sha256 is committed: {names}. Nothing of it is used; "
        f"ask who keeps the mirror in {client.settings_hint} why it differs"
    )


def _fetch_once(
    directory: Path,
    missing: Sequence[Artifact],
    client: Client,
    java: Path,
    timeout_seconds: float,
    progress: Progress,
    *,
    fresh: bool,
) -> tuple[Artifact, ...]:
    for left_over in directory.glob(f"{_SCRATCH_PREFIX}*"):
        shutil.rmtree(left_over, ignore_errors=True)
    progress(Step(f"asking {client.name} for the jars", 0, len(missing)))
    with tempfile.TemporaryDirectory(prefix=_SCRATCH_PREFIX, dir=directory) as scratch:
        work = Path(scratch)
        out = fetch(client, missing, work, java, fresh=fresh, timeout_seconds=timeout_seconds, progress=progress)
        wrong = not_matching(missing, out)
        for artifact in missing:
            if artifact not in wrong:
                os.replace(out / artifact.file_name, directory / artifact.file_name)
    return wrong
