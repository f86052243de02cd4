"""All commands and their options as Markdown, made from what click knows of them: the text in docs/command-line.md."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click


def reference(group: click.Group, context: click.Context) -> str:
    """A part for each command that is not hidden, in the order of their names."""
    return "\n".join(line for name, command in commands(group, context) for line in _part(name, command))


def commands(group: click.Group, context: click.Context) -> Iterator[tuple[click.Context, click.Command]]:
    """Every command below a group that is not hidden, groups included, each before its own."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        inside = click.Context(command, info_name=name, parent=context)
        yield inside, command
        if isinstance(command, click.Group):
            yield from commands(command, inside)


def _part(context: click.Context, command: click.Command) -> Iterator[str]:
    yield f"### {context.command_path}"
    yield ""
    yield _text(command)
    yield ""
    if isinstance(command, click.Group):
        return
    pieces = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    yield "```text"
    yield " ".join([context.command_path, *(["[OPTIONS]"] if _options(command) else []), *pieces])
    yield "```"
    yield ""
    if _options(command):
        yield "| option | default | environment | meaning |"
        yield "| --- | --- | --- | --- |"
        for option in _options(command):
            yield _row(option, context)
        yield ""


def _options(command: click.Command) -> list[click.Option]:
    return [each for each in command.params if isinstance(each, click.Option) and not each.hidden]


def _text(command: click.Command) -> str:
    """The help, with its code as code: a word in capitals is an argument, as in the usage."""
    text = inspect.cleandoc(command.help or command.short_help or "")
    paragraphs = [
        f"```text\n{paragraph.removeprefix(chr(8)).strip(chr(10))}\n```" if paragraph.startswith("\b") else paragraph
        for paragraph in re.split(r"\n{2,}", text)
    ]
    return "\n\n".join(paragraphs)


def _row(option: click.Option, context: click.Context) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    cells = [f"{names} {_value(option, context)}".rstrip(), _default(option), _environment(option), option.help or ""]
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _value(option: click.Option, context: click.Context) -> str:
    """What is given with it: nothing, a number within limits, or as the help names it."""
    if option.is_flag or option.count:
        return ""
    kind = option.type
    if isinstance(kind, (click.IntRange, click.FloatRange)) and option.metavar is None:
        return f"from {kind.min:,}" + (f" to {kind.max:,}" if kind.max is not None else "")
    return f"`{option.make_metavar(context)}`"


def _default(option: click.Option) -> str:
    if option.required:
        return "needed"
    if isinstance(option.show_default, str):
        return option.show_default
    values = option.default if isinstance(option.default, tuple) else (option.default,)
    shown = [str(value) for value in values if isinstance(value, (str, int, float)) and value != ""]
    return "" if option.is_flag or not shown else f"`{', '.join(shown)}`"


def _environment(option: click.Option) -> str:
    return f"`{option.envvar}`" if isinstance(option.envvar, str) else ""
