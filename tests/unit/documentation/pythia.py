"""The whole command line as it is installed, with every command in it."""

from __future__ import annotations

from functools import cache

import click

from tso.commands.main import main
from tso.commands.reference import commands


@cache
def context() -> click.Context:
    """Of `pythia` itself."""
    return click.Context(main, info_name="pythia")


@cache
def everything() -> dict[str, tuple[click.Context, click.Command]]:
    """Command path, such as ``pythia tso serve``, → its context and command; hidden ones are not there."""
    return {inside.command_path: (inside, command) for inside, command in commands(main, context())}


@cache
def leaves() -> dict[str, tuple[click.Context, click.Command]]:
    """Of those the ones that do something."""
    return {path: found for path, found in everything().items() if not isinstance(found[1], click.Group)}
