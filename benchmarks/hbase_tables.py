"""Tables that a benchmark made, dropped at its end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import happybase
from thriftpy2.thrift import TException

DROP_TIMEOUT_MS = 60_000


def drop_tables(thrift: str, names: Iterable[str]) -> None:
    """Delete those of the tables that are there; HBase that is gone took them along. ``thrift``: ``host:port``."""
    host, _, port = thrift.rpartition(":")
    with contextlib.suppress(OSError, TException):
        connection = happybase.Connection(host, int(port), timeout=DROP_TIMEOUT_MS)
        try:
            present = set(connection.tables())
            for name in names:
                if name.encode() in present:
                    connection.delete_table(name, disable=True)
        finally:
            connection.close()
