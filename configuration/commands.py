"""`pythia config …`: look for mistakes in a file, see what is in force and why, list what can be set."""

from __future__ import annotations

import json
import os

import click

from configuration.checking import InForce, Mistake, Said, in_force
from configuration.options import file_flag
from configuration.rooms import all_sections
from configuration.showing import lines_in_force, reference
from configuration.sources import of_environment, of_file

MISTAKES_EXIT_CODE = 1


@click.group()
def config() -> None:
    """The configuration: check a file, show what is in force, list all settings."""


@config.command()
@click.argument("file")
def check(file: str) -> None:
    """Look for every mistake in FILE, without its environment.

    Exit code 0: there is none; 1: mistakes, one a line on standard error; 2: the command itself was called wrongly.
    """
    sections = all_sections()
    said, mistakes = of_file(file, sections, ())
    for section in sections:
        mistakes += in_force(section, said, complete=False)[1]
    _complain(mistakes)
    settings = sum(len(each.values) for each in said)
    click.echo(f"{file}: {settings} settings, no mistake")


@config.command()
@file_flag
@click.option("--json", "as_json", is_flag=True, help="Print JSON: an object for each table.")
def show(file: str | None, as_json: bool) -> None:
    """Show every setting's value, and whether it came from the file, the environment or is the default.

    Values of secrets are not shown. Exit code 1 where there are mistakes, which are told on standard error.
    """
    sections = all_sections()
    said: list[Said] = []
    mistakes: list[Mistake] = []
    if file is not None:
        said, mistakes = of_file(file, sections, ())
    more, wrong = of_environment(os.environ, sections)
    found: dict[str, dict[str, InForce]] = {}
    for section in sections:
        found[section.name], contradicting = in_force(section, [*said, *more], complete=False)
        wrong = [*wrong, *contradicting]
    if as_json:
        shown = {
            section.name: {
                setting.name: {"value": setting.shown(value) if setting.secret else value, "origin": origin}
                for setting in section.settings
                for value, origin in [found[section.name][setting.name]]
            }
            for section in sections
        }
        click.echo(json.dumps(shown, indent=2))
    else:
        for section in sections:
            click.echo("\n".join(lines_in_force(section, found[section.name])) + "\n")
    _complain([*mistakes, *wrong])


@config.command("reference")
def reference_command() -> None:
    """Print the table of all settings, as it is in the documentation."""
    click.echo(reference(all_sections()), nl=False)


def _complain(mistakes: list[Mistake]) -> None:
    for mistake in mistakes:
        click.echo(str(mistake), err=True)
    if mistakes:
        raise SystemExit(MISTAKES_EXIT_CODE)
