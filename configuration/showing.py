"""Settings for people to read: what is in force, and the table of all in the documentation. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from configuration.checking import InForce
from configuration.setting import Section, Setting


def lines_in_force(section: Section, found: Mapping[str, InForce]) -> Iterator[str]:
    """Each setting with its value and where that came from, as TOML with comments."""
    yield f"[{section.name}]"
    for setting in section.settings:
        value, origin = found[setting.name]
        yield f"{setting.name} = {_as_toml(setting, setting.shown(value))}  # {origin}"


def reference(sections: Iterable[Section]) -> str:
    """The tables of all settings, in Markdown."""
    return "\n".join(line for section in sections for line in _reference(section))


def _reference(section: Section) -> Iterator[str]:
    yield f"### `[{section.name}]`"
    yield ""
    yield section.text
    yield ""
    yield "| setting | unit | default | limits | environment | what it is for |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for setting in section.settings:
        shown = setting.shown(setting.default)
        cells = [
            f"`{setting.name}`",
            setting.unit,
            "needed" if setting.required else f"`{shown}`" if shown else "",
            setting.limits,
            f"`{setting.environment}`" if setting.environment else "",
            setting.text,
        ]
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""


def _as_toml(setting: Setting, shown: str) -> str:
    return f'"{shown}"' if setting.kind is str else shown
