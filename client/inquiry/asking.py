"""Asking around about a transaction: tables first, then whoever serves.

Invariant: nothing is changed by asking. No table is made, no life prolonged, nothing fenced. And whatever does not
answer but HBase only leaves something out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from client.connection.primary import Directory
from client.errors import InvalidRequest, NoPrimary
from client.inquiry.findings import Findings, Primary
from client.manager import TransactionManager
from commit_table import Undecided, system_table, table_name
from lease import LeaseError
from wire import Life


class _Serving(NamedTuple):
    epoch: int | None
    primary: Primary | None
    problem: str = ""


def inquire(
    manager: TransactionManager, directory: Directory | None, start_timestamps: Sequence[int]
) -> list[Findings]:
    """What is known of each. ``directory``: where the epoch's record lies; ``None``: nobody is asked but the tables.

    Raises ``InvalidRequest`` where HBase holds no such installation, or for what is no start timestamp;
    ``UpgradeNeeded``, since what is written at another level would be told as something else; ``StoreError``.
    """
    root, tables = manager.settings.root, set(manager.store.table_names())
    if table_name(root) not in tables:
        raise InvalidRequest(f"there is no installation {root} in this HBase: look at --root and --thrift")
    manager.catalog.require_level()
    has_manifest = system_table(root, "manifest") in tables
    below = manager.catalog.vacuums.below_anywhere() if manager.catalog.own_table in tables else 0
    records = {start: manager.commit_table.record(start) for start in start_timestamps}
    serving = _serving(manager, directory)
    still_open = [start for start, record in records.items() if record.outcome() == Undecided()]
    lives = _lives(manager, serving, still_open)
    # Who had committed when it was asked whether it lives is on record by now: it does not live any more.
    records |= {start: manager.commit_table.record(start) for start in lives}
    return [
        Findings(
            start,
            record,
            manager.manifest.summary(start) if has_manifest else None,
            below,
            serving.epoch,
            serving.primary,
            lives.get(start),
            int(time.time() * 1000),
            serving.problem,
        )
        for start, record in records.items()
    ]


def _serving(manager: TransactionManager, directory: Directory | None) -> _Serving:
    if directory is None:
        return _Serving(None, None, "neither --zookeeper nor --oracle says where it is")
    try:
        status = manager.oracle.status()
        return _Serving(status.epoch, Primary(status.epoch, status.last_timestamp, status.horizon))
    except NoPrimary as error:
        problem = str(error)
    try:
        settled = directory.settled(manager.settings.deadline_ms)
    except LeaseError as error:
        return _Serving(None, None, f"{problem}; {error}")
    return _Serving(None if settled is None else settled.epoch, None, problem)


def _lives(manager: TransactionManager, serving: _Serving, start_timestamps: Sequence[int]) -> dict[int, Life]:
    if serving.primary is None or not start_timestamps:
        return {}
    try:
        return dict(zip(start_timestamps, manager.oracle.lives(start_timestamps), strict=True))
    except NoPrimary:  # it has gone since it said how it is
        return {}
