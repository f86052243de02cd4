"""Options that the benchmarks share, and what becomes of their values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from benchmarks.contest import Load
from benchmarks.sides import Services
from configuration.connection_flags import root_flag, thrift_flag, zookeeper_flag
from lease.ensemble import parse_ensemble
from store.hbase.addresses import parse_addresses

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Asked:
    """How long to measure, where HBase is, and what to hand back."""

    rounds: int
    seconds: float
    warm_up_seconds: float
    services: Services | None
    as_json: bool
    plot: Path | None

    def load(self, in_flight: int, cells: int, connections: int = 1) -> Load:
        """A load for windows of that length."""
        return Load(in_flight, cells, connections, self.seconds, self.warm_up_seconds)


def window_options(*, warm_up_seconds: float) -> Callable[[Command], Command]:
    """``--rounds``, ``--seconds`` and ``--warm-up-seconds``."""
    rounds = click.option(
        "--rounds", default=5, show_default=True, type=click.IntRange(1, 100), help="Windows of each side."
    )
    seconds = click.option(
        "--seconds", default=5.0, show_default=True, type=click.FloatRange(0.5, 60), help="Of one window."
    )
    warm_up = click.option(
        "--warm-up-seconds",
        default=warm_up_seconds,
        show_default=True,
        type=click.FloatRange(0.5, 300),
        help="Of each side before the first round, and on until it gets no faster; a cold one flatters the other.",
    )
    return lambda command: rounds(seconds(warm_up(command)))


def service_options(command: Command) -> Command:
    """``--zookeeper`` and ``--thrift``."""
    zookeeper = click.option(
        "--zookeeper", envvar="PYTHIA_ZOOKEEPER", metavar="HOST:PORT", help="Use the HBase of this ZooKeeper …"
    )
    thrift = click.option(
        "--thrift",
        envvar="PYTHIA_THRIFT",
        metavar="HOST:PORT",
        help="… and its Thrift gateway. Without both a cluster is brought up for what needs one.",
    )
    return zookeeper(thrift(command))


json_option = click.option("--json", "as_json", is_flag=True, help="End with one JSON object, on one line.")


def measurement_options(command: Command) -> Command:
    """All that ``asked`` takes."""
    plot = click.option(
        "--plot",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Draw it into this file, such as growth.svg (needs pythia-tso[bench]).",
    )
    return window_options(warm_up_seconds=3.0)(service_options(plot(json_option(command))))


def alternating_options(command: Command) -> Command:
    """Where an oracle is up, ``--rounds``, ``--seconds`` and ``--json``: for what measures two ways in turn."""
    where = zookeeper_flag("where the primary oracle is found.")
    rounds = click.option(
        "--rounds", default=5, show_default=True, type=click.IntRange(1, 100), help="Alternating rounds."
    )
    seconds = click.option(
        "--seconds", default=3.0, show_default=True, type=click.FloatRange(0.1, 60), help="Of one measurement."
    )
    as_json = click.option("--json", "as_json", is_flag=True, help="One JSON object at the end instead of lines.")
    return where(thrift_flag(root_flag(rounds(seconds(as_json(command))))))


def gateway_option(command: Command) -> Command:
    """``--thrift``, of what asks nobody but gateways: what is no address of one is told before anything is measured."""

    @functools.wraps(command)
    def checked(*, thrift: str, **options: Any) -> None:
        _check("--thrift", thrift, parse_addresses)
        command(thrift=thrift, **options)

    return thrift_flag(cast(Command, checked))


hbase_option = click.option("--hbase", is_flag=True, help="Record commits in HBase; else nowhere.")


def services_given(zookeeper: str | None, thrift: str | None) -> Services | None:
    """Both or none. Raises ``UsageError``, also for what is no address."""
    if (zookeeper is None) != (thrift is None):
        raise click.UsageError("give both --zookeeper and --thrift of one HBase, or neither")
    if not zookeeper or not thrift:
        return None
    _check("--zookeeper", zookeeper, parse_ensemble)
    _check("--thrift", thrift, parse_addresses)
    return Services(zookeeper, thrift)


def _check(option: str, value: str, parse: Callable[[str], object]) -> None:
    try:
        parse(value)
    except ValueError as error:
        raise click.UsageError(f"{option}: {error}") from error


def asked(
    *,
    rounds: int,
    seconds: float,
    warm_up_seconds: float,
    zookeeper: str | None,
    thrift: str | None,
    as_json: bool,
    plot: Path | None,
) -> Asked:
    """The values of ``measurement_options``. Raises ``UsageError``."""
    return Asked(rounds, seconds, warm_up_seconds, services_given(zookeeper, thrift), as_json, plot)
