"""Which streaming query a batch belongs to: by its id the batches that have landed are on record.

Spark keeps the id in the query's checkpoint, for good. Tasks are told it in a local property, and so is a function of
``foreachBatch`` where it runs in the driver. With Spark Connect it runs in a process of the server's that is told
nothing: there the caller names the checkpoint, and has Spark read it.

Invariant: no batch goes on record under another query's id. A checkpoint that is named has to be that of a query which
is at this very batch: its *offsets* are written before the function is called, and its end in *commits* after. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from client.errors import InvalidRequest

QUERY_ID: Final = "sql.streaming.queryId"
"""The local property in which Spark tells its tasks which query they belong to; the same after a restart."""

_PATTERN_CHARACTERS: Final = r"\*?[]{}"
"""What Spark takes for a pattern in the path of files that it reads, though not in that of a checkpoint."""


def files_of(checkpoint: str, number: int) -> str:
    """The files of a checkpoint that ``query_at`` looks at, as a pattern for Spark to read."""
    folder = "".join(f"\\{each}" if each in _PATTERN_CHARACTERS else each for each in checkpoint.rstrip("/"))
    return f"{folder}/{{{','.join(_names(number))}}}"


def query_at(number: int, files: Mapping[str, str], checkpoint: str) -> str:
    """The id of the query that is at batch ``number``, by its checkpoint's files: path → text of those there are.

    Raises ``InvalidRequest`` where it is no checkpoint, or its query is at another batch.
    """
    metadata, offsets, ended = (
        next((text for path, text in files.items() if path.endswith(f"/{name}")), None) for name in _names(number)
    )
    try:
        query = json.loads(metadata or "")["id"]
    except (ValueError, TypeError, KeyError):
        query = None
    if not isinstance(query, str):
        raise InvalidRequest(
            f"there is no checkpoint of a streaming query at {checkpoint!r}: call land_batch with checkpoint=…, the "
            "query's checkpointLocation, as Spark's server sees it"
        )
    if offsets is None or ended is not None:
        raise InvalidRequest(
            f"the query of the checkpoint {checkpoint!r} is not at batch {number}, so that another one has called "
            "land_batch, and nothing was written: call it with the checkpointLocation of its own query"
        )
    return query


def _names(number: int) -> tuple[str, str, str]:
    """The query's id, what a batch is made of, and that it has ended."""
    return "metadata", f"offsets/{number}", f"commits/{number}"
