"""Finding out what became of a writer whose version a reader met.

The order of the questions is what makes the answer final (DESIGN section 6): the row's shadow cell (which came along
with the row), the commit table, the shadow cell again (vacuum drops a commit-table row only after the shadow cells
stand, so one of the two is met, unless vacuum removed the cell itself: below its mark the row is read again), then, for
a writer from an older epoch, a fence: from then on it cannot have committed below the reader's epoch, whatever a
deposed oracle still writes. And once more the shadow cell, since the commit may have been recorded, shadowed and
vacuumed between the questions.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Final, NamedTuple

from client.cells import ABORTED_SHADOW, decode_shadow, encode_shadow, shadow_column
from client.snapshots.visibility import NOT_COMMITTED, OPEN, View
from commit_table import Aborted, CommitTable, Committed
from store import CellStore, RowPut, StoreError
from store.forking import leave_at_fork

HEALING_RESTS_TIMES: Final = 10
"""Where a shadow cell could not be written, no reader heals in that table for so many times as long as it took to find
out: HBase may answer reads of a table and take no writes, and reads are not to wait for that each time."""

_log = logging.getLogger(__name__)


class Site(NamedTuple):
    """A place where a writer's shadow cell lies, or should."""

    table: str
    row: bytes
    family: bytes


class OutcomeCache:
    """Final outcomes of transactions, the most recently used ones. Safe to share between threads.

    An outcome is a fact about a transaction, not about a cell, so a table that a few large transactions loaded is
    read almost without questions.
    """

    def __init__(self, entries_max: int) -> None:
        self._entries_max = entries_max
        self._outcomes: OrderedDict[int, int] = OrderedDict()
        self._lasting: set[int] = set()
        self._lock = threading.Lock()
        leave_at_fork(self)

    def leave_to_parent(self) -> None:
        """See ``Leaving``. What is remembered is as true in the child."""
        self._lock = threading.Lock()

    def get(self, writer: int) -> int:
        """The commit timestamp, ``NOT_COMMITTED`` for an aborted one, ``OPEN`` where none is remembered."""
        try:
            self._outcomes.move_to_end(writer)  # without the lock, which would cost more than all the rest
            return self._outcomes[writer]
        except KeyError:
            return OPEN

    def is_lasting(self, writer: int) -> bool:
        """Whether the record of a remembered outcome stays, so that its shadow cells need not be written."""
        return writer in self._lasting

    def remember(self, writer: int, outcome: int, *, is_lasting: bool = False) -> None:
        """Keep a *final* outcome: a commit timestamp, or ``NOT_COMMITTED`` for one that never can commit."""
        with self._lock:
            self._outcomes[writer] = outcome
            self._outcomes.move_to_end(writer)
            if is_lasting:
                self._lasting.add(writer)
            if len(self._outcomes) > self._entries_max:
                dropped, _ = self._outcomes.popitem(last=False)
                self._lasting.discard(dropped)


class Resolver:
    """Asks for outcomes, remembers the final ones, and heals shadow cells. One a manager; thread-safe.

    ``being_written``: the transactions whose shadow cells somebody in this process is about to write. ``looks_up`` is
    told of how many transactions the commit table is about to be asked.
    """

    def __init__(
        self,
        store: CellStore,
        commit_table: CommitTable,
        cache: OutcomeCache,
        *,
        heal: bool,
        being_written: Container[int] = (),
        looks_up: Callable[[int], None] = lambda writers: None,
    ) -> None:
        self._store = store
        self._commit_table = commit_table
        self._cache = cache
        self._heal = heal
        self._being_written = being_written
        self._looks_up = looks_up
        self._rests_until_s: dict[str, float] = {}
        """By table: until when nothing is healed there."""

    def remembered(self, writer: int) -> int:
        """A final outcome that is known without asking, or ``OPEN``."""
        return self._cache.get(writer)

    def remember(self, writer: int, outcome: int) -> None:
        """Keep a final outcome that a shadow cell told."""
        self._cache.remember(writer, outcome)

    def on_record(self, sites: Mapping[int, Site]) -> dict[int, int]:
        """Writer → final outcome, by the commit table, or by the shadow cell at a place that it wrote to; or ``OPEN``.

        ``sites`` names for each writer one place that it wrote to. Fences nobody. ``OPEN`` says nothing of who wrote
        long ago: a vacuum may have dropped what there was, in the commit table and at that place. Raises
        ``StoreUnavailable``.
        """
        outcomes: dict[int, int] = {}
        self._looks_up(len(sites))
        for writer, recorded in self._commit_table.outcomes(list(sites)).items():
            if isinstance(recorded, Committed):
                outcomes[writer] = self._remember_commit(writer, recorded)
            elif isinstance(recorded, Aborted):
                outcomes[writer] = NOT_COMMITTED
                self._cache.remember(writer, NOT_COMMITTED)
            else:
                outcomes[writer] = self._read_shadow(writer, sites[writer])
        return outcomes

    def fence(self, view: View, sites: Mapping[int, Site]) -> dict[int, int]:
        """Writer → commit timestamp, or ``NOT_COMMITTED`` if it did not commit at or below the view's snapshot.

        Of writers of whom nothing was ``on_record`` a moment ago. Raises ``StoreUnavailable``.
        """
        return {writer: self._fence(view, writer, site) for writer, site in sites.items()}

    def write_shadows(self, sites: Iterable[Site], writer: int, outcome: int) -> None:
        """Write a writer's shadow cells: its commit timestamp, or ``NOT_COMMITTED`` once it never can commit."""
        puts: defaultdict[str, dict[bytes, dict[bytes, bytes]]] = defaultdict(dict)
        value = encode_shadow(outcome or ABORTED_SHADOW)
        for table, row, family in sites:
            puts[table].setdefault(row, {})[shadow_column(family)] = value
        for table, rows in puts.items():
            self._store.put(table, [RowPut(row, columns) for row, columns in rows.items()], writer)

    def heal(self, table: str, missing: Mapping[tuple[int, int], Iterable[tuple[bytes, bytes]]]) -> None:
        """Write shadow cells that a reader missed: (writer, commit timestamp) → (row, family). Failure is no matter.

        None of who has a lasting record: a table that such a transaction loaded is read without. Nor of whose are about
        to be written here anyway.
        """
        began_s = time.monotonic()
        if not self._heal or began_s < self._rests_until_s.get(table, 0.0):
            return
        try:
            for (writer, commit_timestamp), places in missing.items():
                if self._cache.is_lasting(writer) or writer in self._being_written:
                    continue
                self.write_shadows((Site(table, row, family) for row, family in places), writer, commit_timestamp)
        except StoreError as error:
            now_s = time.monotonic()
            self._rests_until_s[table] = now_s + HEALING_RESTS_TIMES * (now_s - began_s)
            _log.info("shadow cells in %s were left for the next reader to heal: %s", table, str(error))

    def _fence(self, view: View, writer: int, site: Site) -> int:
        if not view.must_fence(writer):
            return NOT_COMMITTED  # not remembered: it may yet commit, above this snapshot
        fenced = self._commit_table.resolve(writer, view.epoch)
        if isinstance(fenced, Committed):
            return self._remember_commit(writer, fenced)
        shadow = self._read_shadow(writer, site)
        return NOT_COMMITTED if shadow == OPEN else shadow

    def _remember_commit(self, writer: int, recorded: Committed) -> int:
        self._cache.remember(writer, recorded.commit_timestamp, is_lasting=recorded.is_lasting)
        return recorded.commit_timestamp

    def _read_shadow(self, writer: int, site: Site) -> int:
        versions = self._store.versions(site.table, site.row, shadow_column(site.family), before=writer + 1, limit=1)
        if not versions or versions[0].timestamp != writer:
            return OPEN
        outcome = decode_shadow(versions[0].value)
        self._cache.remember(writer, outcome)
        return outcome
