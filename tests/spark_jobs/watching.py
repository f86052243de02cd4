"""A reader beside the jobs: snapshot after snapshot of both tables, without Spark, past whatever is being killed."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Final, Self

from client import ClientSettings, NoPrimary, TransactionManager
from tests.spark_jobs.pairs import Pair, value_of

COLUMN: Final = b"f:v"
PAUSE_SECONDS: Final = 0.05
"""Between two snapshots, so that the reader leaves some of the machine to the job."""
END_SECONDS_MAX: Final = 150.0


class Watcher:
    """What snapshots showed between entering and leaving it; each change of it once."""

    def __init__(self, settings: ClientSettings, tables: tuple[str, str], rows: int) -> None:
        self.seen: list[Pair] = []
        self.torn: list[str] = []
        self.snapshots = 0
        self._settings = settings
        self._tables = tables
        self._rows = rows
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="reads beside the job", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(END_SECONDS_MAX)
        if self._thread.is_alive():
            self.torn.append(f"the reader did not end within {END_SECONDS_MAX:.0f} s")

    def _watch(self) -> None:
        with TransactionManager.connect(self._settings) as manager:
            while not self._over.wait(PAUSE_SECONDS):
                try:
                    self._look(manager)
                except NoPrimary:  # nobody gives snapshots just now
                    continue
                except Exception as error:
                    self.torn.append(f"the reader failed: {error!r}")
                    return

    def _look(self, manager: TransactionManager) -> None:
        self.snapshots += 1
        try:
            pair = read_pair(manager, self._tables, self._rows)
        except ValueError as error:
            self.torn.append(f"a snapshot showed {error}")
            return
        if not self.seen or self.seen[-1] != pair:
            self.seen.append(pair)


def read_pair(manager: TransactionManager, tables: tuple[str, str], rows: int) -> Pair:
    """What the newest snapshot shows. Raises ``ValueError`` where a table is not as one job left it."""
    snapshot = manager.snapshot()
    left, right = (
        value_of((int.from_bytes(row[COLUMN], "big") for _, row in snapshot.scan(table)), rows) for table in tables
    )
    return left, right
