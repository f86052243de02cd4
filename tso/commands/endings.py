"""How a command ends: one table of exit codes, by what went wrong, for all rooms. Pure.

Errors are known here by name: the rooms that raise them are not imported, and most are never loaded. A test holds that
each name is one. Of an error that was raised from another the first in the chain that is known counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from types import MappingProxyType

import click


class Ending(IntEnum):
    """The exit codes of `pythia`; docs/command-line.md says the same in words."""

    DONE = 0
    REFUSED = 1
    """What was asked did not hold, or a rule was against it."""
    WRONG_USE = 2
    """An option, a setting or a file that cannot be."""
    UNREACHABLE = 3
    """No primary, ZooKeeper or HBase answered, or what should run does not."""
    UNKNOWN = 4
    """Whether it was done is not known."""
    DEFECT = 70
    INTERRUPTED = 130
    """128 + SIGINT."""
    PIPE_CLOSED = 141
    """128 + SIGPIPE: whoever read the output has gone."""


BY_ERROR: Mapping[str, Ending] = MappingProxyType(
    {
        "access.credentials.BadCredentials": Ending.WRONG_USE,
        "access.kerberos.BadKerberos": Ending.WRONG_USE,
        "access.tls.BadTls": Ending.WRONG_USE,
        "access.tokens.BadTokens": Ending.WRONG_USE,
        "client.errors.AccessDenied": Ending.REFUSED,
        "client.errors.InvalidSettings": Ending.WRONG_USE,
        "client.errors.NoPrimary": Ending.UNREACHABLE,
        "client.errors.OutcomeUnknown": Ending.UNKNOWN,
        "client.errors.PythiaError": Ending.REFUSED,
        "client.errors.ReplyLost": Ending.UNKNOWN,
        "client.errors.UpgradeNeeded": Ending.REFUSED,
        "client.tables.errors.UnreadableFile": Ending.WRONG_USE,
        "configuration.checking.Wrong": Ending.WRONG_USE,
        "configuration.rest_limits.InvalidLimit": Ending.WRONG_USE,
        "demo.errors.DemoError": Ending.REFUSED,
        "devcluster.errors.DevClusterError": Ending.REFUSED,
        "devcluster.errors.InvalidSettings": Ending.WRONG_USE,
        "devcluster.errors.JarsUnreachable": Ending.UNREACHABLE,
        "devcluster.errors.NotReady": Ending.UNREACHABLE,
        "devcluster.errors.NotRunning": Ending.UNREACHABLE,
        "drills.errors.DrillError": Ending.REFUSED,
        "histories.errors.HistoryError": Ending.WRONG_USE,
        "lease.errors.CoordinatorUnavailable": Ending.UNREACHABLE,
        "lease.errors.InvalidLeaseSettings": Ending.WRONG_USE,
        "lease.errors.LeaseError": Ending.REFUSED,
        "store.errors.StoreError": Ending.REFUSED,
        "store.errors.StoreUnavailable": Ending.UNREACHABLE,
        "store.hbase.addresses.BadAddress": Ending.WRONG_USE,
        "fleet.asking.NoAnswer": Ending.UNREACHABLE,
        "fleet.oracles.CannotHandOver": Ending.REFUSED,
        "fleet.oracles.HandoverUncertain": Ending.UNKNOWN,
        "fleet.oracles.NobodyServes": Ending.UNREACHABLE,
        "tso.alone.NotAlone": Ending.REFUSED,
        "tso.settings.InvalidSettings": Ending.WRONG_USE,
        "versions.formats.FormatNotSpoken": Ending.REFUSED,
        "versions.levels.LevelNotSpoken": Ending.REFUSED,
        "builtins.BrokenPipeError": Ending.PIPE_CLOSED,
        "builtins.ConnectionError": Ending.UNREACHABLE,
        "builtins.TimeoutError": Ending.UNREACHABLE,
        "socket.gaierror": Ending.UNREACHABLE,
        "builtins.FileNotFoundError": Ending.WRONG_USE,
        "builtins.FileExistsError": Ending.WRONG_USE,
        "builtins.IsADirectoryError": Ending.WRONG_USE,
        "builtins.NotADirectoryError": Ending.WRONG_USE,
        "builtins.PermissionError": Ending.WRONG_USE,
        "builtins.UnicodeDecodeError": Ending.WRONG_USE,
        "builtins.OSError": Ending.REFUSED,
    }
)


def ending_of(error: BaseException) -> Ending:
    """The exit code for what ended a command; ``DEFECT`` for what nobody expected."""
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        return Ending.INTERRUPTED
    if isinstance(error, click.ClickException) and error.exit_code != click.ClickException.exit_code:
        return Ending(error.exit_code)
    known = next((ending for one in chain(error) for ending in _by_type(type(one))), None)
    if known is not None:
        return known
    return Ending.REFUSED if isinstance(error, click.ClickException) else Ending.DEFECT


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error, what it was raised from, what that was raised from, and so on."""
    at: BaseException | None = error
    while at is not None:
        yield at
        at = at.__cause__


def _by_type(kind: type[BaseException]) -> Iterator[Ending]:
    for each in kind.__mro__:
        ending = BY_ERROR.get(f"{each.__module__}.{each.__qualname__}")
        if ending is not None:
            yield ending


def message_of(error: BaseException) -> str:
    """What is wrong, and what to do, as it is told after ``error: ``."""
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        return "interrupted; what had been done by then is done"
    if isinstance(error, click.UsageError) and error.ctx is not None:
        return f"{error.format_message().rstrip('.')}; {error.ctx.command_path} --help says what can be given"
    if isinstance(error, click.ClickException):
        return error.format_message()
    return str(error) or type(error).__name__
