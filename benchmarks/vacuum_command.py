"""``pythia bench vacuum``: what stays in the tables while vacuums run under load, and what readers see meanwhile.

*Beside* is the time without a vacuum, at the beginning of the same run: rows of the commit table and versions of a
column that came in it, a second. All transactions are recorded, and checked at the end as those of a drill are.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from benchmarks.machine import describe_machine
from benchmarks.options import json_option, service_options, services_given
from benchmarks.plot import INCHES, require_plotting
from benchmarks.presenting import TABLE_WIDTH_CHARACTERS
from benchmarks.sides import SideError
from benchmarks.surroundings import explained, once_each
from drills import vacuuming
from drills.installation import Plan
from drills.vacuuming import Sample, Vacuumed

HARMED: Final = 1
MINUTES_MAX: Final = 1_440.0
HARMS_SHOWN_MAX: Final = 5
SHOWN: Final = {
    "commit_rows": "rows of the commit table",
    "versions": "versions of a column",
    "versions_most": "… of the one with most",
}
"""Of a sample, in the picture."""
COMPARED: Final = ("commit_rows", "versions")


@click.command()
@click.option(
    "--minutes",
    default=10.0,
    show_default=True,
    type=click.FloatRange(1, MINUTES_MAX),
    help="A tenth without a vacuum.",
)
@click.option("--pause-ms", default=10, show_default=True, type=click.IntRange(0, 10_000),
              help="What each thread of the load waits in between.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Of all that is left to chance.")
@service_options
@json_option
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path),
              help="Draw it into this file, such as vacuum.svg (needs pythia-tso[bench]).")  # fmt: skip
def vacuum(
    minutes: float,
    pause_ms: int,
    seed: int,
    zookeeper: str | None,
    thrift: str | None,
    as_json: bool,
    plot: Path | None,
) -> None:
    """Vacuum one time after the other, under load, and count what stays.

    Exits with 1 when an open snapshot showed anything otherwise after a vacuum, when the recorded transactions were not
    as they must be, or when what vacuums leave grew.
    """
    given = services_given(zookeeper, thrift)
    with explained():
        if plot is not None:
            require_plotting(plot)
        with tempfile.TemporaryDirectory(prefix="pythia-bench-") as place:
            plan = Plan(Path(place))
            if given is not None:
                plan = replace(plan, zookeeper=given.zookeeper, thrift=given.thrift)
            found = vacuuming.run(plan, 60 * minutes, seed=seed, pause_ms=pause_ms, progress=once_each())
        if plot is not None:
            draw(plot, found)
    _print(found)
    if as_json:
        click.echo(json.dumps({**fields_of(found), "machine": describe_machine()}))
    sys.exit(HARMED if any(found.harms.values()) else 0)


def fields_of(found: Vacuumed) -> dict[str, Any]:
    """Plain values for JSON. A case's ratio: what was there at the end beside what there would be without a vacuum."""
    return {
        "cases": [
            {"name": name, "ours": last, "peer": alone, "ratio": round(last / alone, 4) if alone else None}
            for name, last, alone in _beside(found)
        ],
        "seconds": round(found.seconds, 1),
        "vacuums": found.vacuums,
        "looks_at_open_snapshots": found.looks,
        "transactions": found.transactions,
        "commits_per_second_without": round(found.commits_per_second, 1),
        **{name: len(harms) for name, harms in found.harms.items()},
        "harms": {name: list(harms[:HARMS_SHOWN_MAX]) for name, harms in found.harms.items() if harms},
        "samples": [[getattr(each, name) for name in Sample.__slots__] for each in found.samples],
        "samples_are": list(Sample.__slots__),
    }


def _beside(found: Vacuumed) -> list[tuple[str, float, float]]:
    """What the last vacuum left, and what there would be had it all gone on as in the time without."""
    without = [each for each in found.samples if not each.vacuums]
    after = [each for each in found.samples if each.after_vacuum]
    if len(without) < 2 or not after:
        return []
    first, last = without[0], without[-1]
    share = (after[-1].seconds - first.seconds) / max(1e-9, last.seconds - first.seconds)
    return [
        (
            text,
            float(getattr(after[-1], name)),
            round(getattr(first, name) + share * (getattr(last, name) - getattr(first, name)), 1),
        )
        for name, text in SHOWN.items()
        if name in COMPARED
    ]


def _print(found: Vacuumed) -> None:
    table = Table(title=f"{found.vacuums} vacuums in {found.seconds:.0f} s, {found.transactions:,} transactions")
    for heading in ("what stays", "after the last vacuum", "without any, as at the beginning", "ratio"):
        table.add_column(heading, justify="left" if heading == "what stays" else "right")
    for name, last, alone in _beside(found):
        table.add_row(name, f"{last:,.1f}", f"{alone:,.1f}", f"{last / alone:.3f}" if alone else "")
    harms = Table(title=f"{found.looks} looks at open snapshots after a vacuum; harm done")
    for heading in ("kind", "count", "such as"):
        harms.add_column(heading)
    for name, sentences in found.harms.items():
        harms.add_row(name.replace("_", " "), str(len(sentences)), "\n".join(sentences[:HARMS_SHOWN_MAX]))
    console = Console(width=TABLE_WIDTH_CHARACTERS)
    console.print(table)
    console.print(harms)


def draw(path: Path, found: Vacuumed) -> None:
    """Write a picture in the format that the end of ``path`` names. Raises ``SideError`` if it cannot be written."""
    from matplotlib.figure import Figure

    figure = Figure(INCHES, layout="constrained")
    panels = figure.subplots(len(SHOWN), 1, sharex=True)
    for axes, (name, text) in zip(panels, SHOWN.items(), strict=True):
        axes.plot([each.seconds for each in found.samples], _series(found.samples, name))
        axes.set(ylabel=text)
        axes.set_ylim(bottom=0)
        for each in found.samples:
            if each.after_vacuum:
                axes.axvline(each.seconds, color="0.9", zorder=0)
    panels[0].set(title="vacuums under load: a line at the end of each")
    panels[-1].set(xlabel="seconds")
    try:
        figure.savefig(path)
    except OSError as error:
        raise SideError(f"{path}: {error}") from error


def _series(samples: Sequence[Sample], name: str) -> list[float]:
    return [getattr(each, name) for each in samples]
