"""`pythia kernels`: compile what is compiled at its first use, and keep it.

Each room names its kernels by the entry-point group `pythia.kernels`: a module that has some, or a function that calls
some that are compiled for whatever they are called with.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

import click

from kernels import KERNELS, compile_all

GROUP = "pythia.kernels"


@click.command()
def kernels() -> None:
    """Compile all kernels now, and keep them for the processes to come.

    A kernel is compiled at its first use, and kept beside the package, in $NUMBA_CACHE_DIR, or in the user's cache.
    Before that an oracle takes half a minute to be ready, and a Spark task as long to write its first rows, on each
    machine, and in each container. So run this where an image or an archive is made.

    Exit code 1 where they cannot be kept.
    """
    uses = load_all()
    compile_all()
    for use in uses:
        use()
    keeping = [kernel.keeping for kernel in KERNELS if kernel.keeping is not None]
    found, kept = [file for each in keeping for file in each.found], [file for each in keeping for file in each.kept]
    lost = sum(each.not_kept for each in keeping)
    if lost:
        raise click.ClickException(
            f"{lost} of {len(found) + len(kept) + lost} could be kept nowhere: set NUMBA_CACHE_DIR to a directory that "
            "can be written to"
        )
    folders = ", ".join(sorted(map(str, _folders(found + kept))))
    click.echo(f"{len(kept)} compiled, {len(found)} were there; all are in {folders}")


def load_all() -> list[Callable[[], None]]:
    """Import every module that has kernels; returns functions that call those which have no types of their own.

    What needs a package that is not installed is left out, which is said on standard error.
    """
    uses = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            loaded = entry.load()
        except ModuleNotFoundError as error:
            click.echo(f"{entry.name} is left out: {_missing(entry, error)}", err=True)
            continue
        if not isinstance(loaded, ModuleType):
            uses.append(loaded)
    return uses


def _missing(entry: EntryPoint, error: ModuleNotFoundError) -> str:
    """What is not installed. Raises the error where it is a part of this project."""
    top = str(error.name).partition(".")[0]
    if top == entry.module.partition(".")[0]:
        raise error
    return f"{top} is not installed, which whoever uses it has"


def _folders(files: Iterable[Path]) -> Iterator[Path]:
    """Where they are kept: the folder of all packages where they lie beside these."""
    folders = {file.parent for file in files}
    beside = [folder for folder in folders if folder.name == "__pycache__"]
    if beside:
        yield Path(os.path.commonpath(beside))
    yield from (folder for folder in folders if folder not in beside)
