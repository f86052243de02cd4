"""What is on record of a key that a transaction has claimed. Pure.

The record is a row of a table of its own, written in the transaction that it tells of. Hence the invariant: a key is
on record if, and only if, the transaction that claimed it has committed; and of two that claim it and overlap, one
commits, since they write the same row.

(Delta Lake's options ``txnAppId`` and ``txnVersion`` do this for the writes of one table; among services such a key is
called an idempotency key.)
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from client.catalog.record_tables import fields_of
from client.errors import InvalidRequest
from commit_table.timestamps import wall_time_of
from versions.formats import CLAIM_RECORDS

KEY_BYTES_MAX: Final = 1_024
RECORD: Final = b"c:record"
"""The column that the record lies in."""
_BETWEEN: Final = "\0"
"""A table's name, which has none, and a key."""


@dataclass(frozen=True, slots=True)
class Claim:
    """``key`` has landed, with the transaction that began at ``start_timestamp``. A value.

    ``table``: the key is one of this table's; empty: of the installation's. ``incarnation``: of that table, as
    ``Catalog.incarnation`` has it: in one that is made anew nothing has landed.
    """

    key: str
    start_timestamp: int
    table: str = ""
    incarnation: str = ""

    @property
    def began(self) -> datetime:
        """When that transaction began, in UTC."""
        return wall_time_of(self.start_timestamp)

    def to_json(self) -> bytes:
        """The record as it is stored under ``row_of``; read back by ``parse``."""
        fields = {"transaction": self.start_timestamp, "incarnation": self.incarnation}
        return json.dumps({"format": CLAIM_RECORDS.newest, **fields}).encode()

    @classmethod
    def parse(cls, row: bytes, value: bytes) -> Claim:
        """Read what ``to_json`` wrote. Raises ``InvalidRequest`` for anything else, newer formats included."""
        start_timestamp, incarnation = fields_of(value, CLAIM_RECORDS, "a claim", "transaction", "incarnation")
        try:
            table, _, key = row.decode().partition(_BETWEEN)
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"this is no record of a claim ({error!r}), by its row: {row[:200]!r}") from error
        return cls(key, start_timestamp, table, incarnation)


def row_of(key: str, table: str = "") -> bytes:
    """Where the record lies of a key of a table's, or the installation's. Raises ``InvalidRequest`` for what cannot be
    claimed.
    """
    if not isinstance(key, str):
        raise InvalidRequest(f"a key to claim is text, such as 'orders/2026-11-21', not {key!r}")
    try:
        size = len(key.encode())
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"a key to claim is text that UTF-8 has: {error}") from error
    if not 1 <= size <= KEY_BYTES_MAX:
        raise InvalidRequest(
            f"a key to claim has 1 to {KEY_BYTES_MAX:,} bytes in UTF-8, not {size:,}: name the input, or take the hash "
            "of what names it"
        )
    return rows_from(key, table)


def rows_from(prefix: str, table: str) -> bytes:
    """What the rows begin with of a table's keys, or the installation's, that begin with ``prefix``."""
    return f"{table}{_BETWEEN}{prefix}".encode()
