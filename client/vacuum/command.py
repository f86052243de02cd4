"""``pythia vacuum``: an ordinary process, to be run now and then, for instance by cron."""

from __future__ import annotations

import json
import re
import sys
from itertools import islice

import click

from client.command_line import Place, connecting, managed
from client.vacuum.report import TableReport, VacuumReport
from client.vacuum.run import LASTING_RECORDS_DEFAULT, run_vacuum
from commit_table.timestamps import wall_time_of

INCOMPLETE = 1
HOLDERS_SHOWN_MAX = 5
LASTING_RECORDS_MAX = 1_000_000
RETAIN_MS_MAX = 3_650 * 86_400_000

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def _milliseconds(context: click.Context, parameter: click.Parameter, value: str) -> int:
    """A whole number with a unit."""
    match = re.fullmatch(r"(\d{1,15})(ms|[smhd])", value)
    if match is None:
        raise click.BadParameter(
            f"{value!r} is no duration: write a whole number with a unit, as in 90s, 30m, 1h or 7d"
        )
    milliseconds = int(match[1]) * _UNITS_MS[match[2]]
    if milliseconds > RETAIN_MS_MAX:
        raise click.BadParameter(f"{value!r} is longer than ten years")
    return milliseconds


@click.command()
@connecting
@click.option("--retain", default="1h", show_default=True, callback=_milliseconds,
              help="Snapshots of as long ago stay readable; those with a name always do.")  # fmt: skip
@click.option("--retain-outcomes", default="1d", show_default=True, callback=_milliseconds,
              help="The outcomes of transactions begun as long ago can be asked for.")  # fmt: skip
@click.option("--lasting-records", type=click.IntRange(0, LASTING_RECORDS_MAX), default=LASTING_RECORDS_DEFAULT,
              show_default=True, metavar="N",
              help="Of so many transactions that do without shadow cells the records stay.")  # fmt: skip
@click.option("--everything", is_flag=True, help="Look at rows, too, that nobody has written since an earlier vacuum.")
@click.option("--dry-run", is_flag=True, help="Count what would go, and change nothing.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def vacuum(
    place: Place,
    retain: int,
    retain_outcomes: int,
    lasting_records: int,
    everything: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Drop what no reader needs any more: old versions, what aborted, and records of finished transactions.

    May be killed at any time, repeated, and run several times at once. Exits with 1 when a table could not be read;
    then the commit table was left alone.
    """

    def progress(table: str, report: TableReport) -> None:
        if not as_json:
            click.echo(f"{table}: {report.rows:,} rows", err=True)

    with managed(place) as manager:
        report = run_vacuum(
            manager,
            retain_ms=retain,
            outcomes_retain_ms=retain_outcomes,
            lasting_records_max=lasting_records,
            everything=everything,
            dry_run=dry_run,
            progress=progress,
        )
    click.echo(json.dumps(report.as_json()) if as_json else "\n".join(described(report)))
    sys.exit(INCOMPLETE if report.problems else 0)


def described(report: VacuumReport) -> list[str]:
    """The report for people: the horizon, a line for each table, what failed, and what remains."""
    lines = [f"horizon {report.horizon} ({_time(report.horizon)})"]
    lines += [f"held back by {_holders(report.held_back_by)}"] * bool(report.held_back_by)
    if report.dry_run:
        lines.append("dry run: nothing was changed; this is what a vacuum would do")
    lines += [f"{name}: {_table_line(table)}" for name, table in report.tables.items()]
    lines += [f"{name}: FAILED: {problem}" for name, problem in report.problems.items()]
    if report.problems:
        return [*lines, "commit table: left alone, since what failed may need it; mend that, and vacuum again"]
    return [
        *lines,
        f"manifest: {report.manifest_records_dropped:,} rows dropped, {report.manifest_claims_kept:,} claims stay",
        f"commit table: {report.commit_table_rows_dropped:,} rows dropped; those of transactions begun since "
        f"{_time(report.outcomes_horizon)} stay{_lasting(report.commit_table_rows_lasting)}",
    ]


def _passed_over(table: TableReport) -> str:
    return f", {table.rows_passed_over:,} not written since an earlier vacuum" * bool(table.rows_passed_over)


def _left_out(table: TableReport) -> str:
    return f" and {table.shadow_cells_left_out:,} left out" * bool(table.shadow_cells_left_out)


def _lasting(rows: int) -> str:
    return f", and {rows:,} of transactions that do without shadow cells" * bool(rows)


def _time(timestamp: int) -> str:
    return f"{wall_time_of(timestamp):%Y-%m-%d %H:%M:%S} UTC"


def _holders(held_back_by: dict[str, int]) -> str:
    """The named snapshots that hold the vacuum back; without the oldest, the next one does."""
    named = [f"{name} ({_time(timestamp)})" for name, timestamp in islice(held_back_by.items(), HOLDERS_SHOWN_MAX)]
    more = len(held_back_by) - len(named)
    return f"the named snapshots {', '.join(named)}" + f" and {more:,} more" * bool(more)


def _table_line(table: TableReport) -> str:
    dead = table.transactions_aborted + table.transactions_undecided
    return (
        f"{table.rows:,} rows{_passed_over(table)}; {table.columns_trimmed:,} cells lost old versions, "
        f"{table.columns_removed:,} went whole; {table.shadow_cells_written:,} shadow cells written{_left_out(table)}, "
        f"{dead:,} dead transactions aborted; at or below the horizon {table.versions_kept:,} versions stay, and "
        f"{table.aborted_cells_kept:,} aborted ones above them"
    )
