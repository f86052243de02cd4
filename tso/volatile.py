"""An oracle that writes nothing down: to try one out without any service, and to measure what the oracle itself takes.

Its commits are lost with the process, and no reader of HBase can learn of them. Apache Omid has the same for the same
ends, its "in-memory" commit table.
"""

from __future__ import annotations

from collections.abc import Callable

from store.lines import ByteLines
from store.memory import MemoryCellStore
from tso.process import OracleProcess
from tso.settings import ServeSettings


class _Nowhere:
    """A ``store.bulk.BulkPutter`` that keeps nothing."""

    async def put(self, table: str, rows: ByteLines, columns: ByteLines, values: ByteLines, timestamp: int) -> None:
        """See ``BulkPutter``."""

    async def close(self) -> None:
        """See ``BulkPutter``."""


def volatile_process(settings: ServeSettings, announce: Callable[[str], None]) -> OracleProcess:
    """An oracle process that is alone and keeps nothing; what the settings say of services is not used."""
    return OracleProcess(settings, None, MemoryCellStore(), _Nowhere(), announce=announce)
