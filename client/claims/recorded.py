"""Which keys have landed, and forgetting them: for operators, and for work that is to land again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Final

from client.catalog.record_tables import CLAIMS
from client.errors import InvalidRequest
from client.manager import TransactionManager
from client.transactions.claims import RECORD, Claim, row_of, rows_from
from client.transactions.transaction import Transaction

FORGOTTEN_TOGETHER_MAX: Final = 1_000
"""Claims that one transaction forgets."""


def claims(
    manager: TransactionManager, prefix: str = "", *, table: str | None = None, before: datetime | None = None
) -> Iterator[Claim]:
    """What is on record by now: of those keys that begin with ``prefix``, and whose transaction began before a moment.

    ``table``: that table's keys alone, ``""`` for those that are the installation's. The order is that of the tables'
    names, and of the keys in UTF-8. Those of a table that has been dropped since are among them.

    Raises ``InvalidRequest`` for a time without a zone and for a record of a newer release, ``NoPrimary`` and
    ``StoreUnavailable``.
    """
    if before is not None and before.utcoffset() is None:
        raise InvalidRequest(f"{before} has no zone: say datetime(…, tzinfo=…)")
    records = manager.catalog.create_record_table(CLAIMS)
    beginning = b"" if table is None else rows_from(prefix, table)
    rows = manager.snapshot().scan(records, prefix=beginning, columns=[RECORD])
    found = (Claim.parse(row, values[RECORD]) for row, values in rows)
    return (claim for claim in found if claim.key.startswith(prefix) and (before is None or claim.began < before))


def claim_of(manager: TransactionManager, key: str, *, table: str | None = None) -> Claim | None:
    """Who has landed a key by now; ``None``: nobody, as ``Transaction.claim`` means it.

    Raises what ``claims`` does, and ``InvalidRequest`` for what is no key and where there is no such table.
    """
    row = row_of(key, table or "")
    incarnation = "" if table is None else manager.catalog.incarnation(table)
    records = manager.catalog.create_record_table(CLAIMS)
    value = manager.snapshot().get(records, row, [RECORD]).get(RECORD)
    found = None if value is None else Claim.parse(row, value)
    return found if found is not None and found.incarnation == incarnation else None


def forget(manager: TransactionManager, keys: Iterable[str], *, table: str = "") -> int:
    """Have keys be claimed anew by whoever comes next; how many of them were on record.

    ``table``: whose keys they are; by default the installation's. ``FORGOTTEN_TOGETHER_MAX`` at a time, each time in a
    transaction of its own. Raises ``InvalidRequest`` for what is no key, and what ``manager.run`` raises.
    """
    records = manager.catalog.create_record_table(CLAIMS)
    rows = (row_of(key, table) for key in keys)
    forgotten = 0
    while some := list(islice(rows, FORGOTTEN_TOGETHER_MAX)):

        def delete(transaction: Transaction, doomed: Iterable[bytes] = tuple(some)) -> int:
            found = transaction.get_many(records, [*doomed], [RECORD])
            for row in found:
                transaction.delete(records, row, [RECORD])
            return len(found)

        forgotten += manager.run(delete)
    return forgotten
