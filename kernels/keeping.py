"""Where compiled kernels are kept for the processes to come, under names that say all that they depend on.

A file's name is made of the kernel's fingerprint, the types it was compiled for, and the machine; what it holds is
checked by SHA-256. So nothing outdated or damaged is ever run, programs of several releases or machines may share a
place, and a place may be moved, packed into an archive or made read-only. (numba's own cache names its files by the
line of the source, and has one index for all that was compiled from there, which two processes may write at once.)

The invariant: to keep, and not to be able to, changes nothing but how long the next process takes to begin.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import stat
import tempfile
import uuid
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba.core import config
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

log = logging.getLogger(__name__)

SUFFIX = ".kernel"
FILES_OF_A_KERNEL_MAX = 32
"""Kept in one place: a few types, on a few kinds of machine, of some releases. What nobody used longest goes first."""
_DIGEST_BYTES = 32


class KeptKernel:
    """numba's cache of one kernel (what it calls ``_Cache``), with files of our own."""

    def __init__(self, name: str, source: Path, fingerprint: str) -> None:
        self._name = name
        self._source = source
        self._fingerprint = fingerprint
        self.found: list[Path] = []
        """What was taken from there by this process …"""
        self.kept: list[Path] = []
        """… and what it compiled and kept."""
        self.not_kept = 0
        """How often it compiled what it could keep nowhere."""

    @property
    def cache_path(self) -> str | None:
        """For numba's statistics: a folder that something is kept in."""
        return next((str(file.parent) for file in [*self.found, *self.kept]), None)

    def load_overload(self, signature: object, target: Any) -> Any:
        """What was compiled for these types before; ``None``: nothing that is whole."""
        target.refresh()
        name = self._file_name(signature, target.codegen())
        for place in places(self._source):
            body = _read(place / name)
            if body is None:
                continue
            try:
                rebuilt = CompileResult._rebuild(target, *pickle.loads(body))  # type: ignore[no-untyped-call]
            except Exception as error:  # whatever it is: there is another way to what it holds
                log.warning("%s cannot be used, and is compiled anew: %s", place / name, repr(error))
                continue
            self.found.append(place / name)
            return rebuilt
        return None

    def save_overload(self, signature: object, compiled: Any) -> None:
        """Keep it in the first place that takes it."""
        if compiled.library.has_dynamic_globals:  # addresses in this process's memory
            self.not_kept += 1
            log.warning("%s holds what lies in this process's memory, and is compiled by each anew", self._name)
            return
        name = self._file_name(signature, compiled.codegen)
        body: bytes = dumps(compiled._reduce())  # type: ignore[no-untyped-call]
        for place in places(self._source, making=True):
            try:
                _write(place / name, body)
            except OSError as error:
                log.debug("%s takes no compiled kernels: %s", place, str(error))
                continue
            self.kept.append(place / name)
            _drop_oldest(place, f"{self._name}.")
            return
        self.not_kept += 1
        warn_that_nothing_is_kept()

    def enable(self) -> None:
        """Part of numba's protocol."""

    def disable(self) -> None:
        """Part of numba's protocol."""

    def flush(self) -> None:
        """Part of numba's protocol: what is outdated has another name."""

    def _file_name(self, signature: object, codegen: Any) -> str:
        """``codegen``: numba's, of this process: it knows the machine."""
        depends_on = repr((self._fingerprint, _told(signature), codegen.magic_tuple()))
        return f"{self._name}.{sha256(depends_on.encode()).hexdigest()[:32]}{SUFFIX}"


def _told(types: Any) -> str:
    """Types, with the fields of those that are named tuples: a kernel takes them by their places."""
    inner = types if isinstance(types, tuple) else getattr(types, "types", ())
    return f"{types} {getattr(types, 'fields', ())}({', '.join(map(_told, inner))})"


_SAID: list[bool] = []


def warn_that_nothing_is_kept() -> None:
    """Once a process."""
    if not _SAID:
        _SAID.append(True)
        log.warning(
            "each process has to compile for itself, and takes longer to begin, since nowhere a compiled kernel can be "
            "kept: set NUMBA_CACHE_DIR to a directory that it may write to"
        )


def places(source: Path, *, making: bool = False) -> Iterator[Path]:
    """Folders for what is compiled from a file, the best first: the one that was chosen, beside it, the user's cache,
    and one of the user's own among temporary files, for programs without a home. ``making``: that one is made.
    """
    if config.CACHE_DIR:  # type: ignore[attr-defined]
        yield Path(config.CACHE_DIR) / "pythia"  # type: ignore[attr-defined]
    if source.parent.is_dir():  # and no archive
        yield source.parent / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if os.path.isabs(home):
        yield Path(home) / "pythia" / "kernels"
    own = Path(tempfile.gettempdir()) / f"pythia-kernels-{os.getuid()}"
    if making:
        with contextlib.suppress(OSError):
            own.mkdir(mode=0o700)
    if _is_nobody_elses(own):
        yield own


def _is_nobody_elses(folder: Path) -> bool:
    """Whether nobody else can have put anything there: what is kept is run."""
    with contextlib.suppress(OSError):
        found = folder.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
    return False


def _read(file: Path) -> bytes | None:
    """What ``_write`` was given; ``None`` where there is nothing, or not that."""
    try:
        held = file.read_bytes()
    except OSError:
        return None
    digest, body = held[:_DIGEST_BYTES], held[_DIGEST_BYTES:]
    if sha256(body).digest() != digest:
        log.warning("%s is damaged, and is compiled anew", file)
        return None
    with contextlib.suppress(OSError):  # it may be somebody else's
        os.utime(file)  # it is used: see _drop_oldest
    return body


def _write(file: Path, body: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
    try:
        partial.write_bytes(sha256(body).digest() + body)
        partial.replace(file)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise


def _drop_oldest(place: Path, beginning: str) -> None:
    """Files that another process drops, or takes, at the same time are none of ours."""
    with contextlib.suppress(OSError):
        files = [file for file in place.glob(f"*{SUFFIX}") if file.name.startswith(beginning)]
        if len(files) > FILES_OF_A_KERNEL_MAX:
            by_use = sorted(files, key=lambda file: file.stat().st_mtime_ns)
            for file in by_use[:-FILES_OF_A_KERNEL_MAX]:
                file.unlink(missing_ok=True)
