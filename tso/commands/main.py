"""The `pythia` command. Each room brings its own commands through the entry-point group `pythia.commands`.

They are imported only when they are used or listed, and one that cannot be imported (Spark is an extra, for instance)
takes nothing else down: it says what is missing when it is called.

How they end is the matter of ``tso.commands.ending_group``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points, metadata

import click
from click.shell_completion import get_completion_class

from tso.commands.ending_group import EndingGroup
from tso.commands.reference import reference

GROUP = "pythia.commands"
COMPLETION_VARIABLE = "_PYTHIA_COMPLETE"

SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Run an installation", ("tso", "config", "token", "upgrade", "kernels")),
    ("Find out what is wrong, or what happened", ("check", "txn", "ts")),
    ("Work with data", ("table", "snapshot", "claims", "backup", "vacuum")),
    ("Try it", ("demo", "dev")),
    ("Prove it: break, check, measure", ("drill", "history", "bench")),
    ("This command line", ("completion", "reference")),
)
"""What people want to do, and the commands for it."""


class RoomCommands(EndingGroup):
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


def _rows(group: click.Group, ctx: click.Context, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        command = group.get_command(ctx, name)
        if command is not None and not command.hidden:
            yield name, command.get_short_help_str(limit=100)


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
