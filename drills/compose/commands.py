"""``pythia drill compose``: faults of containers, and what came of them."""

from __future__ import annotations

from pathlib import Path

import click

from devcluster import Progress
from drills.carrying_out import carry_out
from drills.compose.drill import ComposeDrill, run_drill
from drills.compose.faults import FAULTS
from drills.failover import FAULTS_MAX, LEASE_MS_MAX, LEASE_MS_MIN, PAUSE_MS_MAX
from drills.report import Report


@click.command("compose", context_settings={"show_default": True})
@click.option("--faults", default=20, type=click.IntRange(1, FAULTS_MAX), help="How many.")
@click.option("--fault", "names", multiple=True, type=click.Choice(sorted(FAULTS)), help="Only these kinds.")
@click.option("--file", default="docker-compose.yml", help="The compose file.",
              type=click.Path(dir_okay=False, path_type=Path))  # fmt: skip
@click.option("--lease-ms", default=2_000, type=click.IntRange(LEASE_MS_MIN, LEASE_MS_MAX), help="The oracles' lease.")
@click.option("--pause-ms", default=10, type=click.IntRange(0, PAUSE_MS_MAX),
              help="What each thread of the load waits in between.")  # fmt: skip
@click.option("--seed", type=int, default=0, help="Of all that is left to chance.")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="A new directory for logs and histories; by default a temporary one, kept only after harm.",
)
@click.option("--json", "as_json", is_flag=True, help="End with one JSON object, on one line, instead of tables.")
def compose_command(
    faults: int,
    names: tuple[str, ...],
    file: Path,
    lease_ms: int,
    pause_ms: int,
    seed: int,
    directory: Path | None,
    as_json: bool,
) -> None:
    """Inflict faults on the containers of docker-compose.yml, under load, with transactions in flight.

    Brings up a compose project of its own, and removes it. Exits with 1 when a commit was lost, a transaction aborted
    by the failover, or anything else was not as it must be.
    """
    kinds = [FAULTS[name] for name in names] or list(FAULTS.values())

    def run(place: Path, tell: Progress) -> Report:
        return run_drill(ComposeDrill(file, place, kinds, faults, seed, lease_ms, pause_ms), tell)

    carry_out(run, directory, as_json=as_json, with_each=True)
