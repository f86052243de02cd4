"""The frame of benchmarks that measure two ways in turn through one manager, on services and an oracle that are up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import click

from benchmarks.rounds import Case, show
from client import ClientSettings, InvalidSettings, TransactionManager


class Measure(Protocol):
    """What there is to measure."""

    def __call__(
        self, manager: TransactionManager, *, rounds: int, seconds: float, progress: Callable[[str], None]
    ) -> Sequence[Case]:
        """Its cases, of that many rounds, each measurement that long; ``progress`` is told of each."""


def settings_of(**given: Any) -> ClientSettings:
    """Those of a command's options. Raises ``UsageError`` for what cannot be: addresses that are none, say."""
    try:
        return ClientSettings(**given)
    except InvalidSettings as error:
        raise click.UsageError(str(error)) from error


def measure_and_show(
    measure: Measure,
    counted: str,
    *,
    zookeeper: str,
    thrift: str,
    root: str,
    rounds: int,
    seconds: float,
    as_json: bool,
    **more: Any,
) -> None:
    """What becomes of ``benchmarks.options.alternating_options``; ``counted``: of what there are so many a second.

    ``more``: of the client's settings. Raises ``UsageError`` for addresses that are none.
    """
    with TransactionManager.connect(settings_of(zookeeper=zookeeper, thrift=thrift, root=root, **more)) as manager:
        cases = measure(manager, rounds=rounds, seconds=seconds, progress=lambda line: click.echo(line, err=True))
    show(cases, counted, as_json=as_json)
