"""The series of one run as a picture: the rate above, the latencies below.

Invariant: the bars show the smallest and the largest of the rounds, so that nobody takes noise for a difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from benchmarks.contest import Series
from benchmarks.sides import SideError

INCHES = (9.0, 7.0)


def require_plotting(path: Path) -> None:
    """Raise ``SideError`` where a picture cannot be drawn into ``path``: to be asked before anything is measured."""
    if find_spec("matplotlib") is None:
        raise SideError("a plot needs matplotlib: pip install 'pythia-tso[bench]'")
    from matplotlib.figure import Figure

    formats = sorted(Figure().canvas.get_supported_filetypes())
    if path.suffix.removeprefix(".").lower() not in formats:
        raise SideError(f"{path.name} has to end in a format for pictures: {', '.join(formats)}")
    if not path.absolute().parent.is_dir():
        raise SideError(f"{path} lies in a directory that is not there: make it first")


def draw(path: Path, title: str, series: Sequence[Series], *, axis: str | None = None) -> None:
    """Write a picture in the format that the end of ``path`` names.

    ``axis``: what the series are steps of; their points are joined then. Raises ``SideError`` if it cannot be written.
    """
    from matplotlib.figure import Figure

    figure = Figure(INCHES, layout="constrained")
    rate, latency = figure.subplots(2, 1, sharex=True)
    places, joined = list(range(len(series))), "-" if axis else ""
    medians = [each.per_second for each in series]
    rate.errorbar(places, medians, yerr=spread(series), marker="o", linestyle=joined, capsize=4)
    rate.set(title=title, ylabel="a second")
    rate.set_ylim(bottom=0)
    for name, values in latencies_ms(series).items():
        latency.plot(places, values, marker="o", linestyle=joined, label=name)
    latency.set(yscale="log", ylabel="whole, ms", xlabel=axis or "")
    latency.set_xticks(
        places, [each.side for each in series], rotation=0 if axis else 20, ha="center" if axis else "right"
    )
    latency.legend()
    try:
        figure.savefig(path)
    except OSError as error:
        raise SideError(f"{path}: {error}") from error


def spread(series: Sequence[Series]) -> tuple[list[float], list[float]]:
    """How far the slowest and the fastest round are from the median."""
    rates = [[window.per_second for window in each.windows] for each in series]
    below = [each.per_second - min(rate) for each, rate in zip(series, rates, strict=True)]
    above = [max(rate) - each.per_second for each, rate in zip(series, rates, strict=True)]
    return below, above


def latencies_ms(series: Sequence[Series]) -> dict[str, list[float]]:
    """Medians over the rounds."""
    return {
        "p50": [each.median(lambda window: window.whole.p50_us) / 1_000 for each in series],
        "p99": [each.median(lambda window: window.whole.p99_us) / 1_000 for each in series],
    }
