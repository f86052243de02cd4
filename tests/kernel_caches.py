"""Compiled kernels that a change has outdated, dropped before any of them is loaded.

numba keeps a kernel beside its source, and compiles it again when that file changes. It does not look at what the
kernel takes from other modules, and has compiled into it: kernels that it calls, constants. So a test run could pass,
or fail, with code that is no longer there.
"""

from __future__ import annotations

import importlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.imports import ROOT, taken_from

_HAS_KERNELS = re.compile(r"^(import|from) (numba|kernels)\b", re.MULTILINE)


def drop_stale_kernels(root: Path) -> list[Path]:
    """Delete caches older than any source that their kernels' module takes from, however far; returns the deleted."""
    dropped = [cache for source in _kernel_modules(root) for cache in _stale_caches(source, root)]
    for cache in dropped:
        cache.unlink(missing_ok=True)  # another run may have been faster
    return dropped


def compile_what_is_missing() -> None:
    """Compile every kernel of the project that is not kept as it stands: before several processes do so at once."""
    drop_stale_kernels(ROOT)  # before any of them is loaded
    from kernels import compile_all
    from tso.warmth import warm_kernels

    for source in _kernel_modules(ROOT):
        importlib.import_module(".".join(source.relative_to(ROOT).with_suffix("").parts))
    compile_all()
    warm_kernels()


def take_kernels_along(copy: Path) -> None:
    """Have a copy of the project, whose files say what they say here, take what is compiled and not compile it too.

    They are made as old as here, which numba asks for: they may be of another clone, whose compiled code was kept.
    """
    for source in copy.rglob("*.py"):
        if (here := ROOT / source.relative_to(copy)).is_file():
            shutil.copystat(here, source)
    for source in _kernel_modules(ROOT):
        for cache in _caches(source):
            place = copy / cache.relative_to(ROOT)
            place.parent.mkdir(exist_ok=True)
            shutil.copy2(cache, place)


def _kernel_modules(root: Path) -> Iterator[Path]:
    for door in root.glob("*/__init__.py"):
        yield from (source for source in door.parent.rglob("*.py") if _HAS_KERNELS.search(source.read_text()))


def _caches(source: Path) -> Iterator[Path]:
    return (source.parent / "__pycache__").glob(f"{source.stem}.*.nb[ic]")


def _stale_caches(source: Path, root: Path) -> Iterator[Path]:
    newest_ns = max(file.stat().st_mtime_ns for file in _reached_from(source, root))
    for cache in _caches(source):
        if cache.stat().st_mtime_ns < newest_ns:
            yield cache


def _reached_from(source: Path, root: Path) -> set[Path]:
    """The module itself, and the project's modules that it imports names of, and they in turn."""
    reached, waiting = {source}, [source]
    while waiting:
        new = taken_from(waiting.pop(), root) - reached
        reached |= new
        waiting += new
    return reached


if __name__ == "__main__":
    compile_what_is_missing()
