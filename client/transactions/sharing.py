"""What several processes that write into one transaction have to know of one another.

Of those that share a transaction only one ends it: what the others wrote would not be judged. And what bulk writers
(``client.bulk_writes.writing``) wrote lies in the store at the transaction's only timestamp: it can neither be taken
back in part, nor be told apart by when it was written. So the marks that a transaction sets between its own writes,
savepoints and checkpoints, hold only as far as no bulk write reaches across them; which jobs those are stands in the
manifest.
"""

from __future__ import annotations

from collections.abc import Collection

from client.bulk_writes.manifest import Manifest
from client.errors import InvalidRequest, TransactionAborted
from client.transactions.commit import Services, mark_aborted
from client.transactions.write_buffer import WriteBuffer
from commit_table import Aborted, Committed

JOBS_SHOWN_MAX = 3


def claim_end(services: Services, start_timestamp: int, claimant: str) -> Committed | None:
    """Be the one that ends a transaction; its commit where another process had it commit before.

    Raises ``InvalidRequest`` where another one is at it, ``TransactionAborted`` where another one rolled it back, and
    ``StoreUnavailable``: then the same ``claimant`` may try again.
    """
    is_mine = services.manifest.claim_end(start_timestamp, claimant)
    outcome = services.commit_table.outcome(start_timestamp)
    if isinstance(outcome, Committed):
        return outcome
    if isinstance(outcome, Aborted):
        mark_aborted(services, start_timestamp, WriteBuffer(0), shared=True)
        reason = "another process that shares it rolled it back, as a failed Spark write does"
        raise TransactionAborted(start_timestamp, reason)
    if not is_mine:
        raise InvalidRequest(
            f"transaction {start_timestamp} is being ended by another process that shares it; if that process has "
            f"died, manager.abort({start_timestamp}) ends it"
        )
    return None


def sealed_jobs(manifest: Manifest, start_timestamp: int) -> frozenset[str]:
    """The bulk writes of a transaction that ended well, by now."""
    return frozenset(job for job, sealed in manifest.job_ends(start_timestamp).items() if sealed)


def require_undoable(manifest: Manifest, start_timestamp: int, sealed: Collection[str]) -> None:
    """Raise ``InvalidRequest`` where a bulk write wrote after a savepoint at which only these jobs had ended."""
    later = _shown(manifest.job_ends(start_timestamp).keys() - set(sealed))
    if later:
        raise InvalidRequest(
            f"transaction {start_timestamp} cannot be rolled back to this savepoint: bulk writes had not ended when it "
            f"was made ({later}), and nothing of them can be undone alone; roll the whole transaction back"
        )


def require_no_bulk_writes(manifest: Manifest, start_timestamp: int) -> None:
    """Raise ``InvalidRequest`` where a bulk write is on record, before a checkpoint."""
    jobs = _shown(manifest.job_ends(start_timestamp))
    if jobs:
        raise InvalidRequest(
            f"transaction {start_timestamp} takes no checkpoint: what its bulk writes ({jobs}) wrote before and what "
            f"they write after could not be told apart; read with own_writes='all', or with 'none'"
        )


def _shown(jobs: Collection[str]) -> str:
    return ", ".join(sorted(jobs)[:JOBS_SHOWN_MAX]) + ", …" * (len(jobs) > JOBS_SHOWN_MAX)
