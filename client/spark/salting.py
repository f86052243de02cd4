"""Row keys with a salt before them: a byte that is made of the key, and spreads neighbours over the table.

Rows whose keys grow, with time or by a counter, all go to the last region of a table, and so to one server. In a table
of several *salt buckets* the first byte of each row key is the number of the bucket that the rest of it hashes to: a
writer's rows go to all of them, and so do the questions of a reader who does not know the whole key. The idea and the
word are Phoenix's (``SALT_BUCKETS``). Pure.

Invariant: the same key has the same salt for ever, since it is where the row lies: XXH3 with 64 bits of ``_BEFORE``,
the key's length in 4 bytes, the largest first, and the key; modulo the number of buckets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import xxhash

from client.key_hashing import hashed_part, hashes_of_rows
from client.snapshots.ranges import end_of_prefix
from client.spark.byte_columns import ByteColumn, joined
from store import KeyRange

SALT_BYTES: Final = 1
_BEFORE: Final = b"salted row key"


def salted(keys: ByteColumn, buckets: int) -> ByteColumn:
    """Each key behind its salt."""
    salts = (hashes_of_rows(_BEFORE, *keys) % np.uint64(buckets)).astype(np.uint8)
    return joined([ByteColumn.of_width(salts, SALT_BYTES), keys], [False, False])


def salted_key(key: bytes, buckets: int) -> bytes:
    """One key behind its salt."""
    return bytes((xxhash.xxh3_64_intdigest(_BEFORE + hashed_part(key)) % buckets,)) + key


def in_every_bucket(prefix: bytes, buckets: int) -> list[bytes]:
    """With what the row keys begin whose keys begin with ``prefix``."""
    return [bytes((bucket,)) + prefix for bucket in range(buckets)]


def ranges_in_every_bucket(ranges: Sequence[KeyRange], buckets: int) -> list[KeyRange]:
    """Where the rows lie whose keys lie in ``ranges``, in order as these are."""
    return [
        KeyRange(salt + start, salt + stop if stop else end_of_prefix(salt))
        for salt in in_every_bucket(b"", buckets)
        for start, stop in ranges
    ]
