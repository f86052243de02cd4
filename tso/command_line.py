"""The `pythia` command. Each room brings its own commands through the entry-point group `pythia.commands`.

They are imported only when they are used or listed, and one that cannot be imported (Spark is an extra, for instance)
takes nothing else down: it says what is missing when it is called.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

import click

GROUP = "pythia.commands"


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


def _loaded(entry: EntryPoint) -> click.Command:
    try:
        command = entry.load()
    except Exception as error:
        return _unavailable(entry.name, error)
    return command if isinstance(command, click.Command) else _unavailable(entry.name, TypeError("it is no command"))


def _unavailable(name: str, error: Exception) -> click.Command:
    reason = f"`pythia {name}` cannot be loaded: {error}"
    if isinstance(error, ModuleNotFoundError):
        reason += f"\nInstall what it needs, for instance: pip install 'pythia-tso[{name}]' or 'pythia-tso[spark]'"

    def complain() -> None:
        raise click.ClickException(reason)

    return click.Command(
        name,
        callback=complain,
        short_help="(not available: call it to see why)",
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


@click.group(cls=RoomCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pythia-tso", prog_name="pythia")
def main() -> None:
    """Pythia: snapshot-isolated transactions on plain HBase."""
