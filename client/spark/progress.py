"""Which micro-batches of a stream are in a table already, and what becomes of one that comes: write, skip or refuse.

Spark numbers the batches of a query and repeats one whose end it did not get on record in its own checkpoint, also
after a restart, under the same number. So the numbers that committed are on record with the data, as one run without a
gap, and a number in it is never written again. Spark repeats the newest batch alone: it begins none before the end of
the one before is in its checkpoint. An older number comes from a checkpoint that was put back, or copied, and then
Spark cuts its batches anew: batch 6 may hold what once were 6 to 10, and input that has come since. So it is refused:
to skip it would lose that input, to write it would lay it over what newer batches wrote. Pure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from client.catalog.record_tables import fields_of
from versions.formats import STREAM_RECORDS

Verdict = Literal["write", "skip", "refuse"]


@dataclass(frozen=True, slots=True)
class Progress:
    """The batches of one query that are in one table: every one from ``first`` to ``last``. A value."""

    first: int
    last: int

    def to_json(self) -> bytes:
        """The record as it is stored; read back by ``from_json``."""
        return json.dumps({"format": STREAM_RECORDS.newest, "first": self.first, "last": self.last}).encode()

    @classmethod
    def from_json(cls, value: bytes) -> Progress:
        """Read what ``to_json`` wrote. Raises ``InvalidRequest`` for anything else, newer formats included."""
        first, last = fields_of(value, STREAM_RECORDS, "a stream's batches", "first", "last")
        return cls(first, last)


def judge(progress: Progress | None, batch: int) -> Verdict:
    """What becomes of a batch, by what is on record (``None``: nothing)."""
    if progress is None or batch > progress.last:
        return "write"
    return "skip" if batch == progress.last else "refuse"


def advanced(progress: Progress | None, batch: int) -> Progress:
    """The record once ``batch``, which was to be written, has committed.

    After a gap it begins anew: the batches of the gap went elsewhere, and nothing is known about them here.
    """
    if progress is None or batch != progress.last + 1:
        return Progress(batch, batch)
    return Progress(progress.first, batch)
