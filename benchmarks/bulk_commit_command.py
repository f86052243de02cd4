"""``pythia bench bulk-commit``: what the process holds, and for how long, that commits a very large write.

Invariant: the rows are written as Spark tasks write them, through ``AttemptWriter``, each with a key of eight bytes and
one small cell; the commit is another process's.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import Any, Final

import click
import numpy as np

from benchmarks.compiled_code import Code
from benchmarks.machine import describe_machine
from benchmarks.options import json_option, service_options, services_given
from benchmarks.our_oracle import OurOracle
from benchmarks.sides import SideError
from benchmarks.surroundings import explained, once_each, surroundings
from client import ClientSettings, TransactionHandle, TransactionManager
from client.bulk_writes.writing import AttemptWriter
from drills.children import python
from store.columns import CellColumns

TABLE: Final = "benchmark_bulk_commit"
PIECE_ROWS: Final = 20_000
KEY_BYTES: Final = 8
LEASE_MS: Final = 3_000
COMMIT_SECONDS_MAX: Final = 3_600


@click.command("bulk-commit")
@click.option(
    "--rows", default=10_000_000, show_default=True, type=click.IntRange(1_000, 100_000_000), help="To write."
)
@service_options
@json_option
def bulk_commit(rows: int, zookeeper: str | None, thrift: str | None, as_json: bool) -> None:
    """Write many rows in one transaction, and commit them from another process.

    Tells how long the commit takes beside the write, how much memory its process holds at most, and how long the
    shadow cells take after it.
    """
    with explained():
        given, progress = services_given(zookeeper, thrift), once_each()
        with surroundings(given, progress, with_services=True) as around:
            assert around.services is not None, "they were asked for"
            oracle = OurOracle(
                around.directory / "oracle", around.guard, around.services, lease_ms=LEASE_MS, code=around.code
            )
            oracle.start()
            try:
                address, root = oracle.load_arguments
                settings = ClientSettings(address, around.services.thrift, root, bulk_shadow_cells="deferred")
                measured = _measure(settings, rows, around.code)
            finally:
                oracle.stop()
        machine = describe_machine()
    for name, value in measured.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        click.echo(f"{name}: {value:,}" if is_number else f"{name}: {value}")
    if as_json:
        click.echo(json.dumps({**measured, "machine": machine}))


def _measure(settings: ClientSettings, rows: int, code: Code) -> dict[str, Any]:
    """The process that commits runs ``code``; what is written before it is written by this one, as installed."""
    with TransactionManager.connect(settings) as manager:
        manager.create_table(TABLE, ["f"], conflict_level="row")
        try:
            transaction = manager.transaction()
            handle = transaction.handle()
            job = manager.open_job(handle)
            started = time.monotonic()
            writer = manager.attempt_writer(handle, TABLE, job, partition=0, attempt=0)
            _write(writer, rows)
            manager.seal_job(handle, job, [(0, 0)])
            seconds = time.monotonic() - started
            committed = _commit(handle, code)
        finally:
            manager.drop_table(TABLE)
    return {
        "rows": rows,
        "code": code.name,
        "write_seconds": round(seconds, 2),
        **committed,
        "commit_beside_write": round(committed["commit_seconds"] / seconds, 3),
    }


def _write(writer: AttemptWriter, rows: int) -> None:
    for first in range(0, rows, PIECE_ROWS):
        count = min(PIECE_ROWS, rows - first)
        keys = np.arange(first, first + count, dtype=np.int64).astype(">i8").view(np.uint8)
        starts = np.arange(count, dtype=np.int64) * KEY_BYTES
        writer.write(
            CellColumns(
                (b"f:v",),
                keys,
                starts,
                np.full(count, KEY_BYTES, np.int64),
                starts[np.newaxis] + KEY_BYTES - 1,  # the key's last byte is the value
                np.ones((1, count), np.int64),
            )
        )


def _commit(handle: TransactionHandle, code: Code) -> dict[str, Any]:
    ended = subprocess.run(
        python("benchmarks.bulk_commit_process"),
        env={**os.environ, **code.environment},
        input=handle.to_json(),
        capture_output=True,
        text=True,
        timeout=COMMIT_SECONDS_MAX,
        check=False,
    )
    if ended.returncode:
        raise SideError(f"the process that commits ended with {ended.returncode}: {ended.stderr[-500:]}")
    found: dict[str, Any] = json.loads(ended.stdout)
    return found
