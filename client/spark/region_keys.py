"""Where regions of a table begin, so that rows like those of a sample spread evenly over them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from client.errors import InvalidRequest
from client.spark.key_codec import row_keys
from client.spark.mapping import TableMapping
from store.columns import taken
from store.making import even_split_keys

SAMPLE_KEYS_MAX: Final = 100_000


class KeySample:
    """Row keys at even distances of a stream of any length; at most ``SAMPLE_KEYS_MAX`` are kept."""

    def __init__(self, keys_max: int = SAMPLE_KEYS_MAX) -> None:
        self._keys_max = keys_max
        self._every = 1
        self._seen = 0
        self.keys: list[bytes] = []

    def add(self, keys: Sequence[bytes]) -> None:
        """The next keys of the stream."""
        for key in keys:
            if self._seen % self._every == 0:
                self.keys.append(key)
                self._thin_out()
            self._seen += 1

    def _thin_out(self) -> None:
        if len(self.keys) > self._keys_max:
            self.keys = self.keys[::2]
            self._every *= 2


def boundaries(keys: Sequence[bytes], regions: int) -> list[bytes]:
    """The first keys of all of ``regions`` regions but the first one, sorted; fewer where the keys are too few."""
    ordered = sorted(set(keys))
    cuts = {ordered[len(ordered) * region // regions] for region in range(1, regions)} if ordered else set()
    return sorted(cuts - set(ordered[:1]))


def split_keys(mapping: TableMapping, regions: int, rows: pa.Table | None = None) -> list[bytes]:
    """The first row keys of all of ``regions`` regions but the first one, for ``create_table``.

    ``rows``: a sample of what the table is to hold, its key columns at least, in any order; of a DataFrame of Spark's
    ``frame.select("id").sample(0.01).toArrow()``. A sample of few different keys gives fewer regions. Without one those
    of a salted table share its buckets, of which each region has one at least. Raises ``InvalidData`` for keys that are
    not of the mapping's types, or not there, ``InvalidRequest``.
    """
    if regions < 1:
        raise InvalidRequest(f"a table has one region at least, not {regions}")
    if rows is None:
        return _of_buckets(mapping, regions)
    sample = KeySample()
    for batch in rows.to_batches():
        sample.add(taken(*row_keys(mapping, batch)))
    return boundaries(sample.keys, regions)


def _of_buckets(mapping: TableMapping, regions: int) -> list[bytes]:
    if regions > max(mapping.salt_buckets, 1):
        salted = f"is salted over {mapping.salt_buckets} buckets" if mapping.salt_buckets else "is not salted"
        raise InvalidRequest(
            f"table {mapping.table!r} {salted}: {regions:,} regions need rows by which to part them: give a sample"
        )
    return even_split_keys(mapping.salt_buckets, regions)
