"""Where settings come from: a TOML file, then the environment, then flags; each has precedence over those before it."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from configuration.checking import Mistake, Said, Wrong, in_force
from configuration.setting import Section

FILE_VARIABLE = "PYTHIA_CONFIG"
FILE_BYTES_MAX = 2**20


def of_file(path: str, sections: Sequence[Section], others: Iterable[str]) -> tuple[list[Said], list[Mistake]]:
    """What a file says about each section, and what in it nobody reads. ``others``: tables of other programs."""
    origin = f"the file {path}"
    try:
        with Path(path).open("rb") as file:
            raw = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        return [], [Mistake(origin, f"cannot be read: {error.strerror or error}")]
    if len(raw) > FILE_BYTES_MAX:
        return [], [Mistake(origin, f"is larger than {FILE_BYTES_MAX} bytes: that is no configuration")]
    try:
        parsed = tomllib.loads(raw.decode("utf-8-sig"))  # editors on Windows begin it with a mark
    except (ValueError, RecursionError) as error:
        return [], [Mistake(origin, f"is not TOML: {error}")]
    mine = {section.name.partition(".")[0] for section in sections}
    read = {name: value for name, value in parsed.items() if name in mine or name not in set(others)}
    return _of_tables(read, "", sections, origin)


def of_environment(environment: Mapping[str, str], sections: Sequence[Section]) -> tuple[list[Said], list[Mistake]]:
    """What the variables of this process say, one source each, so that a mistake names its variable."""
    said: list[Said] = []
    mistakes: list[Mistake] = []
    for section in sections:
        if section.many_environment in environment and section.many_environment:
            origin = f"the variable {section.many_environment}"
            more, wrong = _of_pairs(section, environment[section.many_environment].split(), origin)
            said, mistakes = [*said, *more], [*mistakes, *wrong]
        for setting in section.settings:
            text = environment.get(setting.environment, "") if setting.environment else ""
            if text:
                said.append(Said(section, {setting.name: text}, f"the variable {setting.environment}", texts=True))
    return said, mistakes


def of_flags(section: Section, flags: Mapping[str, Any]) -> list[Said]:
    """What the command line says; flags that were not given are ``None``."""
    given = {name: value for name, value in flags.items() if value is not None}
    return [
        Said(section, {name: value}, f"the flag --{name.replace('_', '-')}", texts=True)
        for name, value in given.items()
    ]


def of_pairs(section: Section, flag: str, pairs: Sequence[str]) -> tuple[list[Said], list[Mistake]]:
    """What a flag says that is given several times, each time as ``name=value``."""
    return _of_pairs(section, pairs, f"the flag {flag}")


def values_of_pairs(
    section: Section, flag: str, pairs: Sequence[str], environment: Mapping[str, str]
) -> dict[str, Any]:
    """What is in force of a section that only the environment, and then such a flag, speak of. Raises ``Wrong``."""
    said, mistakes = of_environment(environment, (section,))
    from_pairs, wrong = of_pairs(section, flag, pairs)
    found, contradicting = in_force(section, [*said, *from_pairs], complete=True)
    if mistakes or wrong or contradicting:
        raise Wrong([*mistakes, *wrong, *contradicting])
    return {name: each.value for name, each in found.items()}


def _of_pairs(section: Section, pairs: Sequence[str], origin: str) -> tuple[list[Said], list[Mistake]]:
    said, mistakes = [], []
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        if section.find(name) is not None and (not equals or not value):
            mistakes.append(Mistake(origin, f"{name} needs a number: write {name}=…"))
        else:
            said.append(Said(section, {name: value}, origin, texts=True))
    return said, mistakes


def _of_tables(
    table: Mapping[str, Any], prefix: str, sections: Sequence[Section], origin: str
) -> tuple[list[Said], list[Mistake]]:
    """Walk through a file's tables; what is no section and leads to none is a mistake."""
    names = [section.name for section in sections]
    section = next((each for each in sections if each.name == prefix), None)
    here: dict[str, Any] = {}
    said: list[Said] = []
    mistakes: list[Mistake] = []
    for key, value in table.items():
        path = f"{prefix}.{key}" if prefix else key
        if isinstance(value, dict) and any(name == path or name.startswith(f"{path}.") for name in names):
            more, wrong = _of_tables(value, path, sections, origin)
            said, mistakes = [*said, *more], [*mistakes, *wrong]
        elif section is not None and not (isinstance(value, dict) and section.find(key) is None):
            here[key] = value
        else:
            mistakes.append(Mistake(origin, _unknown_table(path, names, isinstance(value, dict))))
    if section is not None:
        said.append(Said(section, here, origin, texts=False))
    return said, mistakes


def _unknown_table(path: str, names: Sequence[str], is_table: bool) -> str:
    near = difflib.get_close_matches(path, names, n=1)
    hint = f"; did you mean [{near[0]}]?" if near else f"; there are {', '.join(f'[{name}]' for name in names)}"
    return f"there is no table [{path}]{hint}" if is_table else f"{path} stands outside of every table{hint}"
