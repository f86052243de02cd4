"""The process that commits in ``pythia bench bulk-commit``: one by itself, as Spark's is, so that its memory is seen.

Takes a transaction's handle as JSON from standard input; prints one JSON object.
"""

from __future__ import annotations

import json
import os
import sys
import time

from benchmarks.cpu_time import peak_memory_bytes
from client import Committed, TransactionAborted, TransactionHandle, TransactionManager


def main() -> None:
    """Commit, then write the shadow cells."""
    handle = TransactionHandle.from_json(sys.stdin.read())
    with TransactionManager.connect(handle.settings) as manager:
        before = peak_memory_bytes(os.getpid())
        started = time.monotonic()
        try:
            refused = ""
            outcome: Committed | None = manager.resume(handle).commit()
        except TransactionAborted as error:
            refused, outcome = str(error), None
        committed = time.monotonic()
        after = peak_memory_bytes(os.getpid())
        manager.finish_bulk_writes()
        result = {
            "committed": outcome is not None,
            "refused": refused,
            "commit_seconds": round(committed - started, 2),
            "shadow_cells_seconds": round(time.monotonic() - committed, 2),
            "peak_memory_bytes_before": before,
            "peak_memory_bytes": after,
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
