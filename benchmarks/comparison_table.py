"""Comparisons as a person reads them: a table with a line for each series, and for each ratio."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from benchmarks.comparison import Comparison, Fields, ratio_fields, series_fields
from benchmarks.contest import Series

HEADINGS = ("a second", "begin p50 / p99 ms", "whole p50 / p99 ms", "CPU client + oracle", "ratio", "of", "to")
WITHOUT_RATIO = ("", "", "")
NOT_AGAIN = ("", "", "", "", "")


def table(title: str, comparisons: Sequence[Comparison]) -> Table:
    """What stands beside others is shown once, before the first of them; a ratio says of what, and to what."""
    shown = Table(title=title)
    shown.add_column("case", no_wrap=True)
    for heading in HEADINGS:
        shown.add_column(heading, justify="left" if heading in ("of", "to") else "right")
    told: set[str] = set()
    for comparison in comparisons:
        beside, ours = comparison.beside, comparison.ours
        if beside.side not in told:
            shown.add_row(beside.side, *_cells(beside), *WITHOUT_RATIO)
        cells = NOT_AGAIN if ours.side in told else (ours.side, *_cells(ours))
        shown.add_row(*cells, *_ratio(comparison))
        told |= {beside.side, ours.side}
    return shown


def _cells(series: Series) -> tuple[str, ...]:
    fields = series_fields(series)
    return (
        f"{fields['per_second']:,.0f}",
        _latency(fields["begin"]),
        _latency(fields["whole"]),
        f"{fields['client_cpu_share']:.2f} + {fields['oracle_cpu_share']:.2f}",
    )


def _latency(fields: Fields | None) -> str:
    return "" if fields is None else f"{fields['p50_us'] / 1_000:.3f} / {fields['p99_us'] / 1_000:.3f}"


def _ratio(comparison: Comparison) -> tuple[str, str, str]:
    fields = ratio_fields(comparison.ours, comparison.beside, comparison.quantity.of)
    ratio = f"{fields['ratio']:.2f} ({fields['ratio_min']:.2f}–{fields['ratio_max']:.2f})"
    return ratio, comparison.quantity.name, comparison.beside.side
