"""Which keys have landed, and forgetting them: for operators, and for work that is to land again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Final

from client.catalog.record_tables import CLAIMS
from client.errors import InvalidRequest
from client.manager import TransactionManager
from client.transactions.claims import RECORD, Claim, row_of
from client.transactions.transaction import Transaction

FORGOTTEN_TOGETHER_MAX: Final = 1_000
"""Claims that one transaction forgets."""


def claims(manager: TransactionManager, prefix: str = "", *, before: datetime | None = None) -> Iterator[Claim]:
    """What has landed by now, in the order of the keys in UTF-8: of those keys that begin with ``prefix``, and whose
    transaction began before a moment.

    Raises ``InvalidRequest`` for a time without a zone and for a record of a newer release, ``NoPrimary`` and
    ``StoreUnavailable``.
    """
    if before is not None and before.utcoffset() is None:
        raise InvalidRequest(f"{before} has no zone: say datetime(…, tzinfo=…)")
    records = manager.catalog.create_record_table(CLAIMS)
    rows = manager.snapshot().scan(records, prefix=row_of(prefix) if prefix else b"", columns=[RECORD])
    found = (Claim.parse(row, values[RECORD]) for row, values in rows)
    return (claim for claim in found if before is None or claim.began < before)


def claim_of(manager: TransactionManager, key: str) -> Claim | None:
    """Who has landed a key by now; ``None``: nobody. Raises what ``claims`` does, also for what is no key."""
    row, records = row_of(key), manager.catalog.create_record_table(CLAIMS)
    value = manager.snapshot().get(records, row, [RECORD]).get(RECORD)
    return None if value is None else Claim.parse(row, value)


def forget(manager: TransactionManager, keys: Iterable[str]) -> int:
    """Have keys be claimed anew by whoever comes next; how many of them were on record.

    ``FORGOTTEN_TOGETHER_MAX`` at a time, each time in a transaction of its own. Raises ``InvalidRequest`` for what is
    no key, and what ``manager.run`` raises.
    """
    records = manager.catalog.create_record_table(CLAIMS)
    rows = map(row_of, keys)
    forgotten = 0
    while some := list(islice(rows, FORGOTTEN_TOGETHER_MAX)):

        def delete(transaction: Transaction, doomed: Iterable[bytes] = tuple(some)) -> int:
            found = transaction.get_many(records, [*doomed], [RECORD])
            for row in found:
                transaction.delete(records, row, [RECORD])
            return len(found)

        forgotten += manager.run(delete)
    return forgotten
