"""A group of commands that end as `pythia` documents it, whichever way it is called.

Invariant: a command ends with an exit code of ``tso.commands.endings``, also where nobody can be told why; what went
wrong is told on standard error in one form, ``error: …``, as an object where ``--json`` was given; and only a defect
shows a traceback.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn, TextIO

import click

from tso.commands.endings import Ending, chain, ending_of, message_of


class EndingGroup(click.Group):
    """As click's, but for how its commands end."""

    def invoke(self, ctx: click.Context) -> Any:
        """As click's; whoever read the output and has gone is no error of the command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise SystemExit(_nobody_reads()) from None

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """As click's, but that every ending is one of ``tso.commands.endings``."""
        given = list(sys.argv[1:] if args is None else args)
        # What ZooKeeper's client complains of comes back as an error, told once; its own lines are for logs.
        logging.getLogger("kazoo").addHandler(logging.NullHandler())
        if isinstance(sys.stdout, io.TextIOWrapper):  # what a locale has no letter for is no reason to say nothing
            sys.stdout.reconfigure(errors="backslashreplace")
        if not standalone_mode:
            return super().main(given, prog_name, complete_var, standalone_mode=False, **extra)
        try:
            self._end(given, prog_name, complete_var, **extra)
        finally:
            _leave_nothing_to_flush()

    def _end(self, given: list[str], prog_name: str | None, complete_var: str | None, **extra: Any) -> NoReturn:
        """Run the command, and exit with how it ended."""
        try:
            code = super().main(given, prog_name, complete_var, standalone_mode=False, **extra)
            if sys.stdout is not None:
                sys.stdout.flush()  # while it can be told that this fails
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            sys.exit(Ending.WRONG_USE)
        except SystemExit as ended:
            if ended.code == 1 and isinstance(ended.__context__, BrokenPipeError):  # rich ends in this way
                sys.exit(_nobody_reads())
            raise
        except BaseException as error:
            sys.exit(_told(error, as_json=_wants_json(given)))
        sys.exit(code if isinstance(code, int) else Ending.DONE)


def _wants_json(args: Sequence[str]) -> bool:
    return "--json" in args[: args.index("--")] if "--" in args else "--json" in args


def _told(error: BaseException, *, as_json: bool) -> int:
    """Say what went wrong; returns the exit code."""
    ending = ending_of(error)
    if ending is Ending.PIPE_CLOSED or any(isinstance(each, BrokenPipeError) for each in chain(error)):
        return _nobody_reads()
    message = message_of(error)
    with contextlib.suppress(OSError):  # standard error is closed, or its disk full
        if ending is Ending.DEFECT:
            traceback.print_exception(error)
            message = f"a defect in Pythia, please report it with what stands above: {type(error).__name__}: {message}"
        told = {"error": message, "exit_code": int(ending), "kind": ending.name.lower()}
        click.echo(json.dumps(told) if as_json else f"error: {message}", err=True)
    return ending


def _nobody_reads() -> int:
    for stream in (sys.stdout, sys.stderr):
        _let_go(stream)
    return Ending.PIPE_CLOSED


def _leave_nothing_to_flush() -> None:
    """What cannot be written has been told by now, or cannot be: from 3.14 on Python itself tries once more as it ends,
    says so, and exits with a code of its own.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, ValueError):  # it is closed
            continue
        except OSError:
            _let_go(stream)


def _let_go(stream: TextIO) -> None:
    """Let nothing that is still to be flushed complain."""
    with contextlib.suppress(AttributeError, OSError, ValueError):  # it is no file, in a test for instance
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)
