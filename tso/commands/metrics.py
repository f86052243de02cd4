"""`pythia tso metrics`: what each oracle process has counted, asked over its own protocol."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import click

from access import Credentials
from configuration.connection_flags import one_of, oracle_flag, root_flag, zookeeper_flag
from fleet import ASKED_MS_MAX, NoAnswer, addresses, ask_metrics
from lease import LeaseError
from lease.zookeeper import ZooKeeperCoordinator
from tso.commands.credential_flags import credential_flags
from tso.commands.endings import Ending
from tso.settings import InvalidSettings, parse_listen
from wire import MetricsReply


@click.command()
@zookeeper_flag("where lease and members are kept: every member is asked.", required=False)
@oracle_flag("the one process to ask.")
@root_flag
@click.option(
    "--timeout-ms",
    default=2000,
    show_default=True,
    type=click.IntRange(1, ASKED_MS_MAX),
    help="For each process asked.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: an object with `processes` and `problems`.")
@credential_flags
def metrics(zookeeper: str, oracle: str, root: str, timeout_ms: int, as_json: bool, credentials: Credentials) -> None:
    """Show what oracle processes have counted; docs/operations/metrics.md says what it means.

    Exit code 3 when one of them did not answer.
    """
    zookeeper, oracle = one_of(zookeeper, oracle)
    if bool(oracle) == bool(zookeeper):
        raise click.UsageError("give either --zookeeper, or --oracle (variables: PYTHIA_ZOOKEEPER, PYTHIA_ORACLE)")
    if oracle:
        _check_address(oracle)
    replies, problems = _ask_all([oracle] if oracle else _members(zookeeper, root), timeout_ms, credentials)
    if as_json:
        shown = {"processes": [_as_object(reply) for reply in replies], "problems": problems}
        click.echo(json.dumps(shown, indent=2))
    else:
        for reply in replies:
            click.echo(f"# {reply.holder} at {reply.address}, {reply.role.name.lower()}")
            for name, value in zip(reply.names, reply.values.tolist(), strict=True):
                click.echo(f"{name}  {_number(value)}")
    for problem in problems:
        click.echo(f"error: {problem}; look at pythia tso status", err=True)
    if problems or not replies:
        raise SystemExit(Ending.UNREACHABLE)


def _check_address(oracle: str) -> None:
    try:
        parse_listen(oracle)
    except InvalidSettings as error:
        raise click.BadParameter(f"{oracle!r} is no host:port", param_hint="--oracle") from error


def _members(zookeeper: str, root: str) -> list[str]:
    try:
        with contextlib.closing(ZooKeeperCoordinator(zookeeper)) as coordinator:
            return addresses(coordinator, root)
    except (LeaseError, ValueError) as error:
        raise click.ClickException(str(error)) from error


def _ask_all(asked: list[str], timeout_ms: float, credentials: Credentials) -> tuple[list[MetricsReply], list[str]]:
    replies, problems = [], []
    for address in asked:
        try:
            replies.append(ask_metrics(address, timeout_ms, credentials))
        except NoAnswer as error:
            problems.append(str(error))
    return replies, problems


def _as_object(reply: MetricsReply) -> dict[str, Any]:
    samples = {name: _number(value) for name, value in zip(reply.names, reply.values.tolist(), strict=True)}
    return {"holder": reply.holder, "address": reply.address, "role": reply.role.name.lower(), "metrics": samples}


def _number(value: float) -> float | int:
    return int(value) if value.is_integer() else value
