"""Settings as flags of a command line: name, default, limits and help come from the declarations.

A flag gives text, or nothing; what it means is decided where all sources meet (`configuration.checking`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from configuration.setting import Section, Setting
from configuration.sources import FILE_VARIABLE

Command = TypeVar("Command", bound=Callable[..., Any])


def flags(section: Section) -> Callable[[Command], Command]:
    """A flag for each setting of a section; each is ``None`` where it was not given."""

    def decorate(command: Command) -> Command:
        for setting in reversed(section.settings):
            command = _flag(setting)(command)
        return command

    return decorate


file_flag = click.option(
    "--config",
    "file",
    metavar="FILE",
    envvar=FILE_VARIABLE,
    show_envvar=True,
    help="A TOML file with settings. The environment has precedence over it, and flags over both.",
)


def _flag(setting: Setting) -> Callable[[Command], Command]:
    name = f"--{setting.name.replace('_', '-')}"
    if setting.kind is bool:
        return click.option(name, is_flag=True, default=None, help=_help(setting))
    return click.option(name, metavar=_metavar(setting), help=_help(setting))


def _metavar(setting: Setting) -> str:
    if setting.choices:
        return f"[{'|'.join(setting.choices)}]"
    return setting.unit if setting.kind is str else f"NUMBER ({setting.unit})"


def _help(setting: Setting) -> str:
    facts = [f"environment: {setting.environment}"] if setting.environment else []
    if setting.default not in ("", False):
        facts.append(f"default: {setting.shown(setting.default)}")
    if setting.kind in (int, float):
        facts.append(setting.limits)
    return f"{setting.text}  [{'; '.join(facts)}]" if facts else setting.text
