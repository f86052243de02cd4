"""What commands for operators share: where the services are, and what an error looks like.

Invariant: what an operator can put right is told in one line, with exit code 1 (2 where a file is at fault) and without
a traceback.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple

import click

from client.errors import InvalidRequest, PythiaError
from client.manager import TransactionManager
from client.settings import ClientSettings
from client.snapshots.moments import Moment, parse_moment, validate_name
from client.tables.errors import UnreadableFile
from configuration.connection_flags import one_of, oracle_flag, root_flag, thrift_flag, zookeeper_flag
from lease import LeaseError
from store import StoreError

UNREADABLE = 2
_NOBODY = "127.0.0.1:1"
"""In place of an oracle that nobody named, and that nobody asks."""

_FLAGS = (
    zookeeper_flag("where the primary oracle is found.", required=False),
    oracle_flag("an oracle that serves alone."),
    thrift_flag,
    root_flag,
)


class Place(NamedTuple):
    """Where an installation is; the fields are as in ``ClientSettings``, and not checked."""

    zookeeper: str
    oracle: str
    thrift: str
    root: str


class Refused(click.ClickException):
    """A file that cannot be read or written."""

    exit_code = UNREADABLE


def connecting(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``place``, as its flags say it."""

    @wraps(command)
    def with_place(**given: Any) -> Any:
        zookeeper, oracle = one_of(given.pop("zookeeper"), given.pop("oracle"))
        place = Place(zookeeper, oracle, given.pop("thrift"), given.pop("root"))
        return command(**given, place=place)

    decorated: Callable[..., Any] = with_place
    for flag in reversed(_FLAGS):
        decorated = flag(decorated)
    return decorated


def name_option(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """What may name a snapshot, or nothing where nothing was given."""
    try:
        if value is not None:
            validate_name(value)
    except InvalidRequest as error:
        raise click.BadParameter(str(error)) from error
    return value


def moment_option(context: click.Context, parameter: click.Parameter, value: str | None) -> Moment | None:
    """What an option names, as its callback."""
    try:
        return None if value is None else parse_moment(value)
    except InvalidRequest as error:
        raise click.BadParameter(str(error)) from error


def settings_for(place: Place, *, needs_oracle: bool, thrift2: str = "") -> ClientSettings:
    """The settings of a command. Raises ``click.UsageError`` for flags that do not go together, ``InvalidSettings``.

    Where it needs no oracle and none was named, they name an address at which none is.
    """
    if place.zookeeper and place.oracle:
        raise click.UsageError("give either --zookeeper or --oracle, not both")
    named = bool(place.zookeeper or place.oracle)
    if needs_oracle and not named:
        raise click.UsageError("give --zookeeper, or --oracle for an oracle that serves alone: neither is there")
    oracle = place.oracle if named else _NOBODY
    return ClientSettings(place.zookeeper, place.thrift, place.root, oracle=oracle, thrift2=thrift2)


@contextmanager
def managed(place: Place, *, needs_oracle: bool = True, thrift2: str = "") -> Iterator[TransactionManager]:
    """A manager for one command; see ``settings_for`` and ``explained``."""
    with explained():
        settings = settings_for(place, needs_oracle=needs_oracle, thrift2=thrift2)
        with TransactionManager.connect(settings) as manager:
            yield manager


@contextmanager
def explained() -> Iterator[None]:
    """Raise ``click.ClickException`` for what an operator can put right."""
    try:
        yield
    except UnreadableFile as error:
        raise Refused(str(error)) from error
    except (PythiaError, StoreError, LeaseError) as error:
        raise click.ClickException(str(error)) from error
