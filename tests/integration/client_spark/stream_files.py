"""The files of a streaming query: its input, one a batch, and its checkpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

OLDEST_S = 1_700_000_000


def add_file(folder: Path, number: int, values: Mapping[int, int]) -> None:
    """Another file, of rows k → v, in the folder's ``input``: another batch, in the order of the numbers."""
    whole = folder / f"{number:03}.whole"
    whole.write_text("".join(json.dumps({"k": key, "v": value}) + "\n" for key, value in values.items()))
    (folder / "input").mkdir(exist_ok=True)
    os.utime(whole, (OLDEST_S + number,) * 2)  # Spark takes the oldest file first
    whole.rename(folder / "input" / f"{number:03}.json")


def query_of(checkpoint: Path) -> str:
    """The id that Spark gave the query, for good."""
    identity: str = json.loads((checkpoint / "metadata").read_text())["id"]
    return identity


def forget_last_batch(checkpoint: Path) -> int:
    """Take the end of the newest batch from Spark's own record, as if its driver had died before writing it."""
    commits = checkpoint / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdecimal())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)
    return last
