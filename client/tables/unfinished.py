"""What is written under another name until it is whole: a file of an export, a directory of a backup.

A kill leaves it, by a name that nobody takes for the one that was asked for.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Final

UNFINISHED: Final = ".unfinished"


def unfinished_beside(path: Path) -> Path:
    """A name of its own in the same directory, so that giving it ``path``'s is one step."""
    return path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}{UNFINISHED}")


def keep(path: Path) -> None:
    """Have a file, or a directory's list of names, on the disk, whatever happens to the machine. Raises ``OSError``."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
