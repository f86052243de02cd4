"""The key ranges of a table's regions, out of what the gateway says of them.

The gateway names every *replica* of a region, so that of a table with region replicas each range comes several times;
and it reads HBase's catalogue row by row, in which a region and its halves are there together, or neither, for a moment
while the region splits. Whoever took such an answer for the key space would read rows twice, or leave some out.

**A scan may not leave its region.** HBase numbers the edits of each region by themselves. A scan that is within a
region when that is merged with the next one goes on in the merged region with the first one's number, and does not see
what the other one's edits with higher numbers wrote: it gives old rows for new ones, or leaves rows out, and tells
nobody (shown on HBase 2.6.1). Where each scan ends with its region, the next one gets a number of the region it finds.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from store.cells import KeyRange
from store.hbase.failures import RegionsUnsettled

STARTS_SECONDS: Final = 10.0
"""How long it is believed where regions begin. A region has to be split, compacted and merged within it for a scan to
cross where the two met."""
STARTS_TIMES_ASKED: Final = 20
"""It is believed for so many times as long as it took to ask, at least: a table may have so many regions that asking
takes seconds, and scans are not to spend more than a twentieth of their time on it."""
TABLES_KNOWN_MAX: Final = 1_000
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


class RegionStarts:
    """Where the regions of tables begin, as of a few seconds ago. Safe to share between threads.

    ``ask`` gives the first keys of a table's regions; none, where there is no such table. ``monotonic`` gives seconds.
    """

    def __init__(self, ask: Callable[[bytes], Iterable[bytes]], *, monotonic: Callable[[], float]) -> None:
        self._ask = ask
        self._monotonic = monotonic
        self._known: dict[bytes, tuple[float, list[bytes]]] = {}
        """By table: until when it is believed, and where its regions begin."""

    def parts(self, table: bytes, key_range: KeyRange, *, reverse: bool) -> Iterator[KeyRange]:
        """``key_range`` in parts that each lie in one region, from the first to the last, or ``reverse``.

        Where a part ends is looked up when it is asked for. Raises what ``ask`` raises.
        """
        rest: KeyRange | None = key_range
        while rest is not None:
            part, rest = parted(self._starts(table), rest, reverse=reverse)
            yield part

    def _starts(self, table: bytes) -> list[bytes]:
        now = self._monotonic()
        known = self._known.get(table)
        if known is None or now > known[0]:
            starts = sorted(self._ask(table))
            seconds = max(STARTS_SECONDS, STARTS_TIMES_ASKED * (self._monotonic() - now))
            if len(self._known) >= TABLES_KNOWN_MAX:
                self._known.clear()
            known = self._known[table] = now + seconds, starts
        return known[1]


def parted(starts: Sequence[bytes], key_range: KeyRange, *, reverse: bool) -> tuple[KeyRange, KeyRange | None]:
    """The part of ``key_range`` in the first of the regions that begin at ``starts``, or in the last; and the rest."""
    start, stop = key_range
    if reverse:
        below = bisect_left(starts, stop) if stop else len(starts)
        cut = starts[below - 1] if below else b""
        is_within = start < cut
        return (KeyRange(cut, stop), KeyRange(start, cut)) if is_within else (key_range, None)
    above = bisect_right(starts, start)
    is_within = above < len(starts) and (not stop or starts[above] < stop)
    return (KeyRange(start, starts[above]), KeyRange(starts[above], stop)) if is_within else (key_range, None)
