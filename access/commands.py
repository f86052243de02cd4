"""`pythia token …`: make a token, look for mistakes in a file of them, list what is in it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime

import click

from access.making import add_to, lines_of, make_secret
from access.roles import AccessRole
from access.tokens import LIMIT_MAX, NAME_RULE, BadTokens, Token, is_name, parse
from access.watching import read_tokens

_LIMIT = click.IntRange(1, LIMIT_MAX)


def _checked_name(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if not is_name(value):
        raise click.BadParameter(f"{NAME_RULE}, not {value[:80]!r}")
    return value


@click.group()
def token() -> None:
    """Tokens, by which oracles know who asks: create, check, list."""


@token.command()
@click.option("--name", required=True, callback=_checked_name, help="Whose it is: letters, digits, '_' and '-'.")
@click.option("--role", "roles", required=True, multiple=True, type=click.Choice([role.value for role in AccessRole]),
              help="What its holder may do; may be given several times. transact and operate imply read.")  # fmt: skip
@click.option("--expires", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
              help="When it ends, UTC; a date: its beginning. Not given: never.")  # fmt: skip
@click.option("--connections-max", type=_LIMIT, help="Connections that hold it at once, to one process.")
@click.option("--requests-in-flight-max", type=_LIMIT, help="Requests not answered yet, to one process.")
@click.option("--add-to", "path", type=click.Path(dir_okay=False), help="A file of tokens, made where there is none.")
def create(
    name: str,
    roles: tuple[str, ...],
    expires: datetime | None,
    connections_max: int | None,
    requests_in_flight_max: int | None,
    path: str | None,
) -> None:
    """Make a token. Prints its secret, once and nowhere else: the file has its hash only.

    Without --add-to it prints the lines for the file, too, on standard error.
    """
    secret = make_secret()
    limits = {"connections_max": connections_max, "requests_in_flight_max": requests_in_flight_max}
    moment = None if expires is None else expires.replace(tzinfo=UTC)
    chosen = [AccessRole(role) for role in dict.fromkeys(roles)]
    lines = lines_of(name, secret, chosen, moment, {key: value for key, value in limits.items() if value is not None})
    with _explained(path):
        if path is None:
            parse(lines)
            click.echo(f"# lines for the file of tokens\n{lines}", err=True)
        else:
            add_to(path, lines)
    click.echo(secret)


@token.command()
@click.argument("path", metavar="FILE", type=click.Path(dir_okay=False))
def check(path: str) -> None:
    """Tell every mistake in FILE. Exit code 0: none, 1: some."""
    with _explained(path):
        found = read_tokens(path)
    click.echo(f"{path}: {len(found.by_name)} tokens, no mistake")


@token.command(name="list")
@click.argument("path", metavar="FILE", type=click.Path(dir_okay=False))
def list_tokens(path: str) -> None:
    """Show the tokens in FILE: names, roles, ends and limits."""
    with _explained(path):
        found = read_tokens(path)
    now = datetime.now(UTC)
    for each in found.by_name.values():
        click.echo(_line(each, now))


def _line(token: Token, now: datetime) -> str:
    parts = [token.name, ",".join(sorted(token.roles))]
    if token.expires is not None:
        parts.append(f"{'expired' if now >= token.expires else 'until'} {token.expires:%Y-%m-%dT%H:%M:%SZ}")
    limits = {name: getattr(token, name) for name in ("connections_max", "requests_in_flight_max")}
    parts += [f"{name}={limit}" for name, limit in limits.items() if limit != LIMIT_MAX]
    if len(token.hashes) > 1:
        parts.append(f"secrets={len(token.hashes)}")
    return "  ".join(parts)


@contextlib.contextmanager
def _explained(path: str | None) -> Iterator[None]:
    try:
        yield
    except BadTokens as error:
        raise click.ClickException("\n".join(error.mistakes)) from error
    except OSError as error:
        where, reason = error.filename or path, error.strerror or str(error)  # a full disk names no file
        raise click.ClickException(f"{where}: {reason}" if where else reason) from error
