"""The `pythia` command. Each room brings its own commands through the entry-point group `pythia.commands`.

They are imported only when they are used or listed, and one that cannot be imported (Spark is an extra, for instance)
takes nothing else down: it says what is missing when it is called.

Invariant: a command ends with an exit code of ``tso.commands.endings``; what went wrong is told on standard error in
one form, ``error: …``, as an object where ``--json`` was given; and only a defect shows a traceback.
"""

from __future__ import annotations

import io
import json
import logging
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points, metadata
from typing import Any

import click
from click.shell_completion import get_completion_class

from tso.commands.endings import Ending, chain, ending_of, message_of
from tso.commands.reference import reference

GROUP = "pythia.commands"
COMPLETION_VARIABLE = "_PYTHIA_COMPLETE"

SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Run an installation", ("tso", "config", "token", "upgrade")),
    ("Find out what happened", ("txn", "ts")),
    ("Work with data", ("table", "snapshot", "vacuum")),
    ("Try it", ("demo", "dev")),
    ("Prove it: break, check, measure", ("drill", "history", "bench")),
    ("This command line", ("completion", "reference")),
)
"""What people want to do, and the commands for it."""


class RoomCommands(click.Group):
    """A group whose commands are the installed entry points."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands, sorted."""
        return sorted({entry.name for entry in entry_points(group=GROUP)} | set(super().list_commands(ctx)))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or one that says why it cannot be had."""
        for entry in entry_points(group=GROUP, name=cmd_name):
            return _loaded(entry)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The map: all commands, by what people want to do."""
        there = self.list_commands(ctx)
        listed = {name for _, names in SECTIONS for name in names}
        more = tuple(name for name in there if name not in listed)
        for title, names in (*SECTIONS, ("More", more)):
            rows = list(_rows(self, ctx, [name for name in names if name in there]))
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

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
            code = super().main(given, prog_name, complete_var, standalone_mode=False, **extra)
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


def _rows(group: click.Group, ctx: click.Context, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        command = group.get_command(ctx, name)
        if command is not None and not command.hidden:
            yield name, command.get_short_help_str(limit=100)


def _wants_json(args: Sequence[str]) -> bool:
    return "--json" in args[: args.index("--")] if "--" in args else "--json" in args


def _told(error: BaseException, *, as_json: bool) -> int:
    """Say what went wrong; returns the exit code."""
    ending = ending_of(error)
    if ending is Ending.PIPE_CLOSED or any(isinstance(each, BrokenPipeError) for each in chain(error)):
        return _nobody_reads()
    message = message_of(error)
    if ending is Ending.DEFECT:
        traceback.print_exception(error)
        message = f"a defect in Pythia, please report it with what stands above: {type(error).__name__}: {message}"
    told = {"error": message, "exit_code": int(ending), "kind": ending.name.lower()}
    click.echo(json.dumps(told) if as_json else f"error: {message}", err=True)
    return ending


def _nobody_reads() -> int:
    """Let nothing that is still to be flushed complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            os.dup2(nowhere, stream.fileno())
        except (AttributeError, OSError, ValueError):  # it is no file, in a test for instance
            continue
    return Ending.PIPE_CLOSED


def _loaded(entry: EntryPoint) -> click.Command:
    try:
        command = entry.load()
    except Exception as error:
        return _unavailable(entry.name, error)
    return command if isinstance(command, click.Command) else _unavailable(entry.name, TypeError("it is no command"))


def _unavailable(name: str, error: Exception) -> click.Command:
    reason = f"`pythia {name}` cannot be loaded: {error}"
    if isinstance(error, ModuleNotFoundError):
        extra = name if name in (metadata("pythia-tso").get_all("Provides-Extra") or ()) else "spark"
        reason += f"\nInstall what it needs, for instance: pip install 'pythia-tso[{extra}]'"

    def complain() -> None:
        raise click.ClickException(reason)

    return click.Command(
        name,
        callback=complain,
        short_help="(not available: call it to see why)",
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


@click.group(cls=RoomCommands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(package_name="pythia-tso", prog_name="pythia")
def main() -> None:
    """Pythia: snapshot-isolated transactions on plain HBase.

    Exit codes: 0 done; 1 refused, or it did not hold; 2 wrong use; 3 nobody answered; 4 not known; 130 interrupted.
    """


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes `pythia` in SHELL.

    \b
    bash:  eval "$(pythia completion bash)"                              in ~/.bashrc
    zsh:   eval "$(pythia completion zsh)"                               in ~/.zshrc
    fish:  pythia completion fish > ~/.config/fish/completions/pythia.fish
    """
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(main, {}, "pythia", COMPLETION_VARIABLE).source())


@main.command("reference")
@click.pass_context
def reference_command(context: click.Context) -> None:
    """Print all commands with their options, as they are in docs/command-line.md."""
    click.echo(reference(main, context.find_root()), nl=False)
