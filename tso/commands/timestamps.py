"""`pythia ts …`: a timestamp as a time, and a time as timestamps. Asks nobody."""

from __future__ import annotations

import json
from datetime import datetime

import click

from commit_table.timestamps import (
    TIMESTAMP_MAX,
    TIMESTAMPS_PER_MILLISECOND,
    compose,
    counter_of,
    milliseconds_of,
    wall_time_of,
)


@click.group()
def ts() -> None:
    """Timestamps: decode, encode."""


@ts.command()
@click.argument("timestamp", type=click.IntRange(0, TIMESTAMP_MAX))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def decode(timestamp: int, as_json: bool) -> None:
    """Say when TIMESTAMP was taken: wall time (UTC), milliseconds since 1970, counter.

    An epoch is a timestamp, too: the first one of its primary. Which epoch a transaction is from: pythia txn show.
    """
    moment = wall_time_of(timestamp).isoformat(timespec="milliseconds")
    milliseconds, counter = milliseconds_of(timestamp), counter_of(timestamp)
    if as_json:
        click.echo(
            json.dumps({"timestamp": timestamp, "time": moment, "milliseconds": milliseconds, "counter": counter})
        )
    else:
        click.echo(f"{moment}  milliseconds {milliseconds}  counter {counter}")


@ts.command()
@click.argument("time")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def encode(time: str, as_json: bool) -> None:
    """Say which timestamps are of TIME, a millisecond: the first and the last one.

    TIME is ISO 8601 with its zone, such as 2026-11-22T12:00:00Z or 2026-11-22T13:00:00.250+01:00. A snapshot at the
    last one sees what was committed by then.
    """
    try:
        moment = datetime.fromisoformat(time)
        if moment.utcoffset() is None:
            raise click.BadParameter(
                f"{time!r} has no zone: add Z for UTC, or an offset such as +01:00", param_hint="TIME"
            )
        first = compose(int(moment.timestamp() * 1000))
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            f"{time!r} is no time from 1970 on: write it like 2026-11-22T12:00:00Z", param_hint="TIME"
        ) from error
    last = first + TIMESTAMPS_PER_MILLISECOND - 1
    if as_json:
        click.echo(json.dumps({"time": time, "first": first, "last": last}))
    else:
        click.echo(f"first {first}  last {last}")
