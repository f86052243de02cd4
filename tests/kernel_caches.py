"""Compiled kernels that a change has outdated, dropped before any of them is loaded.

numba keeps a kernel beside its source, and compiles it again when that file changes. It does not look at what the
kernel takes from other modules, and has compiled into it: kernels that it calls, constants. So a test run could pass,
or fail, with code that is no longer there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.imports import defining, imports

_IMPORTS_NUMBA = re.compile(r"^(import|from) numba\b", re.MULTILINE)


def drop_stale_kernels(root: Path) -> list[Path]:
    """Delete caches older than any source that their kernels' module takes from, however far; returns the deleted."""
    dropped = [cache for source in _kernel_modules(root) for cache in _stale_caches(source, root)]
    for cache in dropped:
        cache.unlink(missing_ok=True)  # another run may have been faster
    return dropped


def _kernel_modules(root: Path) -> Iterator[Path]:
    for door in root.glob("*/__init__.py"):
        yield from (source for source in door.parent.rglob("*.py") if _IMPORTS_NUMBA.search(source.read_text()))


def _stale_caches(source: Path, root: Path) -> Iterator[Path]:
    newest_ns = max(file.stat().st_mtime_ns for file in _taken_from(source, root))
    for cache in (source.parent / "__pycache__").glob(f"{source.stem}.*.nb[ic]"):
        if cache.stat().st_mtime_ns < newest_ns:
            yield cache


def _taken_from(source: Path, root: Path) -> set[Path]:
    """The module itself, and the project's modules that it imports names of, and they in turn."""
    reached, waiting = {source}, [source]
    while waiting:
        files = (defining(module, name, root) for module, name in imports(waiting.pop()))
        new = {file for file in files if file is not None} - reached
        reached |= new
        waiting += new
    return reached
