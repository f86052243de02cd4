"""A directory that has its name only once it is whole.

Everything goes to another directory beside it, which gets the name once the last byte is on the disk; what fails
removes it, and what is killed leaves it, by a name that nobody takes for a backup. Nothing that is there is replaced.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from client.tables.errors import UnreadableFile
from client.tables.unfinished import keep, unfinished_beside


@contextmanager
def named_at_the_end(directory: Path) -> Iterator[Path]:
    """A directory to write to, which is ``directory`` in the end.

    Raises ``UnreadableFile`` where that is there already, or cannot be written.
    """
    unfinished = unfinished_beside(directory)
    try:
        if directory.exists():
            raise UnreadableFile(f"{directory} exists already: a backup is a directory of its own, so name another")
        unfinished.mkdir(parents=True)
        yield unfinished
        for written in unfinished.iterdir():
            keep(written)
        keep(unfinished)
        unfinished.rename(directory)  # fails where something of the name is there by now, unless it is empty
        keep(directory.parent)
    except OSError as error:
        raise UnreadableFile(f"{directory} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            shutil.rmtree(unfinished)
