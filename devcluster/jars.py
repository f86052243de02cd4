"""The user's cache of jars: filled once, checked at every use.

Invariant: a file enters the cache only by a rename within one file system, after its sha256 was found right; a fetch
that is cut short leaves only a scratch directory, which the next one removes. One lock: one process fetches at a time.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from devcluster.artifacts import Artifact, committed_list, digest, not_matching
from devcluster.errors import DiskFull, JarMismatch, disk_errors
from devcluster.locks import file_lock
from devcluster.resolve import Client, fetch, find_client
from devcluster.settings import Progress, Step

FETCH_FREE_MEBIBYTES = 300
_SCRATCH_PREFIX = "fetch-"


def cache_home() -> Path:
    """``$XDG_CACHE_HOME/pythia``, or ``~/.cache/pythia``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pythia"


def jar_directory(artifacts: Sequence[Artifact]) -> Path:
    """Where the jars of this very list are kept."""
    return cache_home() / f"jars-{digest(artifacts)}"


def ensure_jars(java: Path, timeout_seconds: float, progress: Progress) -> tuple[Path, ...]:
    """The paths of the committed list's jars, each checked, fetched first where that is needed.

    Raises:
        JarClientMissing, JarsUnreachable, JarFetchFailed, JarMismatch, DiskFull, Busy, UnusableDirectory:
            see ``errors``.
    """
    return ensure_listed(committed_list(), lambda: find_client(java), java, timeout_seconds, progress)


def ensure_listed(
    artifacts: Sequence[Artifact],
    choose_client: Callable[[], Client],
    java: Path,
    timeout_seconds: float,
    progress: Progress,
) -> tuple[Path, ...]:
    """As ``ensure_jars``, for any list and client; the client is only chosen when something is to be fetched."""
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
