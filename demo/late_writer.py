"""The second writer: a process of its own that reports flights late, and touches the same summary rows as the months.

``python -m demo.late_writer SETTINGS PREFIX``. Told of a month, it writes the flights that were left to it and adds
them to the summaries, in one transaction through ``manager.run``. In its first attempt it waits, with everything read
and written, until the month's own transaction has committed: so that attempt must end in a conflict, and the next one
must start from what the month wrote.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import pandas as pd

from client import ClientSettings, Conflict, Transaction, TransactionAborted, TransactionManager
from client.spark import table_mapping
from demo.children import commands, tell
from demo.flights import is_late, read_flights
from demo.summaries import BY_DAY, SUMMARIES, Measures, added, summarise
from demo.tables import FLIGHTS, TableNames, frame_of_totals, put_frame, read_summary
from demo.tally import COMMITTED, CONFLICT


class LateWriter:
    """Reports the late flights of one month at a time."""

    def __init__(self, manager: TransactionManager, names: TableNames, flights: pd.DataFrame) -> None:
        self._manager = manager
        self._flights_mapping = table_mapping(manager, names.of(FLIGHTS))
        self._summaries = [(summary, table_mapping(manager, names.of(summary.name))) for summary in SUMMARIES]
        self._flights = flights

    def report(self, month: int, month_committed: Callable[[], None]) -> None:
        """Write the late flights of a month; ``month_committed`` returns once its own transaction is through."""
        late = self._flights[self._flights["month"] == month]
        attempts: list[int] = []

        def attempt(transaction: Transaction) -> None:
            attempts.append(transaction.start_timestamp)
            before = self._write(transaction, late)
            tell({"event": "attempt", "month": month, "transaction": attempts[-1], "flights_before": before})
            if len(attempts) == 1:
                month_committed()
            _commit(transaction, month)

        self._manager.run(attempt)
        tell({"event": "reported", "month": month, "flights": len(late)})

    def _write(self, transaction: Transaction, late: pd.DataFrame) -> int:
        """Write flights and summaries; returns how many flights of the late ones' day were there before."""
        put_frame(transaction, self._flights_mapping, late)
        flights_before = 0
        for summary, mapping in self._summaries:
            stored, new = read_summary(transaction, mapping, summary), summarise(late, summary)
            if summary is BY_DAY:
                flights_before = sum(stored.get(key, Measures()).flights for key in new)
            put_frame(transaction, mapping, frame_of_totals(added(stored, new), summary))
        return flights_before


def _commit(transaction: Transaction, month: int) -> None:
    """Commit, and tell how it ended: ``manager.run`` would keep to itself why it has to run an attempt again."""
    try:
        transaction.commit()
    except TransactionAborted as error:
        tell({"event": "ended", "month": month, "end": CONFLICT if isinstance(error, Conflict) else error.reason})
        raise
    tell({"event": "ended", "month": month, "end": COMMITTED})


def main(settings: str, prefix: str) -> None:
    """Report month after month, as the demo says; ends when the demo says nothing more."""
    everything = read_flights()
    with TransactionManager.connect(ClientSettings.from_json(settings)) as manager:
        writer = LateWriter(manager, TableNames(prefix), everything[is_late(everything)])
        said = commands()

        def month_committed() -> None:
            if next(said, None) is None:
                raise SystemExit("the demo is gone: the report is not committed")

        for command in said:
            writer.report(int(command["month"]), month_committed)


if __name__ == "__main__":
    main(*sys.argv[1:])
