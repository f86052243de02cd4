"""The key ranges of a table's regions, out of what the gateway says of them.

The gateway names every *replica* of a region, so that of a table with region replicas each range comes several times;
and it reads HBase's catalogue row by row, in which a region and its halves are there together, or neither, for a moment
while the region splits. Whoever took such an answer for the key space would read rows twice, or leave some out.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from store.hbase.failures import RegionsUnsettled
from store.protocol import KeyRange

_KEY_BYTES_SHOWN = 60


def covering(table: str, named: Iterable[KeyRange]) -> list[KeyRange]:
    """The ranges that are ``named``, at least one, each once and in order.

    ``RegionsUnsettled`` unless every key lies in exactly one of them.
    """
    ranges = sorted(set(named))
    if ranges[0].start:
        raise _unsettled(table, "begin only", ranges[0].start)
    for left, right in pairwise(ranges):
        if not left.stop or left.stop != right.start:  # an empty stop is the end of the table, an empty start is not
            raise _unsettled(table, "do not follow each other", right.start)
    if ranges[-1].stop:
        raise _unsettled(table, "end", ranges[-1].stop)
    return ranges


def _unsettled(table: str, what: str, key: bytes) -> RegionsUnsettled:
    shown = repr(key[:_KEY_BYTES_SHOWN]) + ("…" if len(key) > _KEY_BYTES_SHOWN else "")
    return RegionsUnsettled(
        f"the regions of table {table} {what} at {shown}, as for a moment while one splits; "
        f"if this lasts, HBase's catalogue needs repair"
    )
