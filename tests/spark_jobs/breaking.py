"""Rules of the data source, broken one at a time: random jobs have to notice.

What ``tests.mutations`` is for the tests of CI, this is for the differential test, which takes minutes for each: a
comparison with a model that finds nothing wrong proves nothing, unless it finds what is.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.imports import ROOT
from tests.mutations.__main__ import Copies
from tests.mutations.mutation import Mutation

_FOUND: Final = "DIFFERENCE:"
_NAMED: Final = "spark_jobs"
_RUN_SECONDS_PER_SEED_MAX: Final = 300

BROKEN: Final = (
    Mutation(
        "a moment of the past is read one timestamp too early",
        "client/spark/reader.py",
        "manager.snapshot(at=options.as_of)",
        "manager.snapshot(at=options.as_of - 1 if isinstance(options.as_of, int) else options.as_of)",
        _NAMED,
    ),
    Mutation(
        "an overwrite keeps a row that it should delete",
        "client/spark/removal.py",
        "yield from _deleted(cells.only(~is_kept),",
        "yield from _deleted(cells.only(~is_kept).cut(1)[1],",
        _NAMED,
    ),
    Mutation(
        "a null leaves the value that was there",
        "client/spark/codecs.py",
        "value_starts[nulls], value_lengths[nulls] = offset, len(TOMBSTONE)",
        "value_starts[nulls], value_lengths[nulls] = offset, ABSENT",
        _NAMED,
    ),
    Mutation(
        "a delete leaves the marker that the row exists",
        "client/spark/removal.py",
        "return dict.fromkeys([*columns, *others], TOMBSTONE)",
        "return dict.fromkeys({*columns, *others} - {row_marker_column(mapping.families[0].encode())}, TOMBSTONE)",
        _NAMED,
    ),
    Mutation(
        "a snapshot sees what committed after it",
        "client/snapshots/column_visibility.py",
        "return NOT_COMMITTED < outcome <= view.snapshot or writer == view.own",
        "return NOT_COMMITTED < outcome or writer == view.own",
        _NAMED,
    ),
    Mutation(
        "a transaction does not see what its own jobs wrote",
        "client/spark/reader.py",
        "    if ended:\n        return transaction, ended\n",
        "    if not ended:\n        return transaction, ended\n",
        _NAMED,
    ),
    Mutation(
        "what a job wrote has no part in conflicts",
        "client/bulk_writes/manifest.py",
        'b"m:keys": keys.astype("<u8").tobytes(),',
        'b"m:keys": b"",',
        _NAMED,
    ),
    Mutation(
        "shadow cells of jobs tell an earlier commit than there was",
        "client/bulk_writes/shadow_pass.py",
        "encode_shadow(outcome),",
        "encode_shadow(min(outcome, start_timestamp + 1)),",
        _NAMED,
    ),
    Mutation(
        "a filter for what is at most a value leaves that value out",
        "client/spark/predicates.py",
        "at_most: list[Span] = [(b\"\", _one_value(column, value)[1])]",
        "at_most: list[Span] = [(b\"\", _one_value(column, value)[0])]",
        _NAMED,
    ),
    Mutation(
        "a filter reads all but the last bucket of a salted table",
        "client/spark/predicates.py",
        "ranges = ranges_in_every_bucket(ranges, mapping.salt_buckets)",
        "ranges = ranges_in_every_bucket(ranges, mapping.salt_buckets - 1)",
        _NAMED,
    ),
    Mutation(
        "a program finds a salted row in another bucket than Spark",
        "client/spark/salting.py",
        "return bytes((xxhash.xxh3_64_intdigest(_BEFORE + hashed_part(key)) % buckets,)) + key",
        "return bytes((xxhash.xxh3_64_intdigest(_BEFORE + key) % buckets,)) + key",
        _NAMED,
    ),
    Mutation(
        "a value that begins like a tombstone is not escaped",
        "client/spark/codecs.py",
        "stored = [escaped_like(column, TOMBSTONE[0]) for column in values]",
        "stored = list(values)",
        _NAMED,
    ),
    Mutation(
        "a change in a column that comes before another one is overlooked",
        "client/snapshots/column_visibility.py",
        "            newest[row] = max(newest[row], commit)\n",
        "            newest[row] = commit\n",
        _NAMED,
    ),
    Mutation(
        "a job whose key has landed lands again",
        "client/spark/writer.py",
        "self._has_landed = not transaction.claim(",
        "transaction.claim(",
        _NAMED,
    ),
    Mutation(
        "a boolean is true in no row",
        "client/spark/value_codec.py",
        "np.packbits(data != 0, bitorder=\"little\").tobytes())",
        "np.packbits(data == 1, bitorder=\"little\").tobytes())",
        _NAMED,
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one broken rule: whether random jobs noticed, and the end of what they said."""

    name: str
    noticed: bool
    said: str


def break_each(
    broken: Sequence[Mutation], directory: Path, *, seeds: int, zookeeper: str, thrift: str
) -> Iterator[Verdict]:
    """Run the stories of the first ``seeds`` seeds against each broken rule, in a copy of the project."""
    copies = Copies(ROOT, directory)
    for mutation in broken:
        with copies.broken(mutation) as copy:
            yield _verdict(mutation.name, copy, seeds, ("--zookeeper", zookeeper, "--thrift", thrift))


def _verdict(name: str, copy: Path, seeds: int, services: Sequence[str]) -> Verdict:
    command = [sys.executable, "-m", "tests.spark_jobs", "differential", "--seeds", str(seeds), *services]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(
        command,
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_RUN_SECONDS_PER_SEED_MAX * (seeds + 1),
        check=False,
    )
    found = ran.returncode == 1 and _FOUND in ran.stdout
    said = ran.stdout[ran.stdout.find(_FOUND) :] if found else ran.stdout[-2_000:]
    return Verdict(name, found, said)
