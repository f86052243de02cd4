"""``pythia bench``: every claim of speed as a command that measures it."""

from __future__ import annotations

import click

from benchmarks.attacked_command import attacked
from benchmarks.availability_command import availability
from benchmarks.awake_command import awake
from benchmarks.begins_command import begins
from benchmarks.bulk_commit_command import bulk_commit
from benchmarks.compiled_command import compiled
from benchmarks.growth_command import growth
from benchmarks.large_command import large
from benchmarks.latency_command import latency
from benchmarks.peer_command import peer
from benchmarks.spark_command import spark
from benchmarks.vacuum_command import vacuum


@click.group()
def bench() -> None:
    """Claims of speed, each as a ratio beside something else in the same run."""


for command in (
    attacked, availability, awake, begins, bulk_commit, compiled, growth, large, latency, peer, spark, vacuum,
):  # fmt: skip
    bench.add_command(command)
