"""The reader: a process of its own that looks for a moment at which the summaries are not those of the flights.

``python -m demo.reader SETTINGS PREFIX``. It uses the client library alone. A *full* check opens a snapshot, reads all
flights in it, computes every summary from them and compares it, row by row, with the summary table in the same
snapshot. That takes longer and longer, so between two full checks there are *quick* ones, each in a snapshot of its
own: all summaries have to agree on their sums, and the flights of some days, at which a torn commit would show, are
compared with the summary by day. It ends at the first difference, or with a last full check when it is told to.
"""

from __future__ import annotations

import sys
import threading
from typing import Final

from client import ClientSettings, Snapshot, TransactionManager
from client.spark import row_key, table_mapping
from demo.children import commands, tell
from demo.flights import LATE_DAY
from demo.summaries import (
    BY_DAY,
    SUMMARIES,
    SUMMARISED_COLUMNS,
    Key,
    Totals,
    differences,
    disagreements,
    summarise,
    total,
)
from demo.tables import FLIGHTS, TableNames, read_summary, scan_frame

QUICK_CHECKS: Final = 10
"""After each full check."""

PAUSE_SECONDS: Final = 0.2
"""Before each quick check: on small tables the reader would else take the processor from those it watches."""


class Reader:
    """Checks one snapshot after the other."""

    def __init__(self, manager: TransactionManager, names: TableNames) -> None:
        self._manager = manager
        self._flights = table_mapping(manager, names.of(FLIGHTS))
        self._summaries = [(summary, table_mapping(manager, names.of(summary.name))) for summary in SUMMARIES]

    def run(self, finish: threading.Event) -> None:
        """Until a difference was found, or until told to finish and one more full check."""
        while True:
            last = finish.is_set()
            if not self.full_check() or last:
                return
            for _ in range(QUICK_CHECKS):
                if not finish.wait(PAUSE_SECONDS) and not self.quick_check():
                    return

    def full_check(self) -> bool:
        """Whether each summary is that of the flights, in a new snapshot."""
        snapshot = self._manager.snapshot()
        flights = scan_frame(snapshot, self._flights, SUMMARISED_COLUMNS)
        found = [
            difference
            for summary, mapping in self._summaries
            for difference in differences(
                summary, summarise(flights, summary), read_summary(snapshot, mapping, summary)
            )
        ]
        return _told("full", snapshot, len(flights), [str(difference) for difference in found])

    def quick_check(self) -> bool:
        """Whether all summaries have the same sums, and telling days their flights, in a new snapshot."""
        snapshot = self._manager.snapshot()
        summaries: dict[str, Totals] = {
            summary.name: read_summary(snapshot, mapping, summary) for summary, mapping in self._summaries
        }
        by_day = summaries[BY_DAY.name]
        found = [
            difference
            for day in telling_days(by_day)
            for difference in differences(BY_DAY, self._of_day(snapshot, day), _only(by_day, day))
        ]
        return _told("quick", snapshot, total(by_day).flights, [*map(str, found), *disagreements(summaries)])

    def _of_day(self, snapshot: Snapshot, day: Key) -> Totals:
        flights = scan_frame(snapshot, self._flights, SUMMARISED_COLUMNS, prefix=row_key(self._flights, *day))
        return summarise(flights, BY_DAY)


def telling_days(by_day: Totals) -> list[Key]:
    """Days at which a torn commit shows: the newest of which there is a row, the day of the newest late report, and the
    first day of the next month, of which there must not be a flight yet."""
    if not by_day:
        return [(1, 1)]
    month, day = (int(part) for part in max(by_day))
    return [(month, day), (month, LATE_DAY), (month + 1, 1)]


def _only(totals: Totals, key: Key) -> Totals:
    return {key: totals[key]} if key in totals else {}


def _told(kind: str, snapshot: Snapshot, flights: int, found: list[str]) -> bool:
    tell({"event": "checked", "kind": kind, "snapshot": snapshot.timestamp, "flights": flights, "differences": found})
    return not found


def main(settings: str, prefix: str) -> None:
    """Run until told to finish; ends at once when the demo is gone."""
    finish = threading.Event()
    with TransactionManager.connect(ClientSettings.from_json(settings)) as manager:
        reader = Reader(manager, TableNames(prefix))
        threading.Thread(target=_listen, args=(finish,), daemon=True).start()
        reader.run(finish)
    tell({"event": "finished"})


def _listen(finish: threading.Event) -> None:
    for _ in commands():
        finish.set()


if __name__ == "__main__":
    main(*sys.argv[1:])
