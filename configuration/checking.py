"""What was said, held against what may be said: every mistake at once, each with what to do about it.

The values of one source are read by one pydantic model for each section, which is made from the declarations; so all
of a source's mistakes come together. Numbers and truth values in a file have to be such; in the environment and in
flags everything is text. Invariant: what comes out without a mistake has the declared types and lies in the limits.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import ErrorDetails

from configuration.setting import Section, Setting

_INT_MAX = 2**63 - 1
DEFAULT_ORIGIN = "default"
"""Where a value came from that nobody gave."""


class Said(NamedTuple):
    """What one source says about one section. ``texts``: whether all it can say is text."""

    section: Section
    values: Mapping[str, Any]
    origin: str
    """Such as ``the file pythia.toml``."""
    texts: bool


class InForce(NamedTuple):
    """The value that counts, and where it came from."""

    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class Mistake:
    """Something that cannot be, where it was said, and what to do."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


class Wrong(ValueError):
    """Mistakes in the configuration; the text has all of them."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        lines = [str(mistake) for mistake in self.mistakes]
        many = f"{len(lines)} mistakes in the configuration:\n  "
        super().__init__(lines[0] if len(lines) == 1 else many + "\n  ".join(lines))


def in_force(section: Section, said: Iterable[Said], *, complete: bool) -> tuple[dict[str, InForce], list[Mistake]]:
    """What counts for a section: of the sources, each has precedence over those before it.

    ``complete``: nothing will be added, so what is missing is a mistake.
    """
    found = {setting.name: InForce(setting.default, DEFAULT_ORIGIN) for setting in section.settings}
    mistakes: list[Mistake] = []
    faulty: set[str] = set()
    for source in said:
        if source.section.name == section.name:
            values, wrong = _read(source)
            mistakes += wrong.values()
            faulty |= wrong.keys()
            found |= {name: InForce(value, source.origin) for name, value in values.items()}
    if complete:
        mistakes += [
            Mistake("", f"{setting.name} is missing: {_how_to_give(section, setting)}")
            for setting in section.settings
            if setting.required and found[setting.name].origin == DEFAULT_ORIGIN and setting.name not in faulty
        ]
    mistakes += _contradictions(section, found, faulty, complete)
    return found, mistakes


def _read(said: Said) -> tuple[dict[str, Any], dict[str, Mistake]]:
    """Values that can be, and mistakes, both by name."""
    model = _model(said.section, said.texts)
    # Not left to the model: of a name that is no text for it, such as one with a lone surrogate, it does not say which.
    wrong = {
        name: Mistake(_where(said, name), _unknown(said.section, name))
        for name in said.values
        if said.section.find(name) is None
    }
    known = {name: value for name, value in said.values.items() if name not in wrong}
    try:
        model.model_validate(known)
    except ValidationError as error:
        for problem in error.errors(include_url=False):
            name = str(problem["loc"][0])
            wrong.setdefault(name, _explained(said, name, problem))
    right = {name: value for name, value in known.items() if name not in wrong}
    values = {name: value for name, value in model.model_validate(right) if name in right}
    for name, value in list(values.items()):
        reason = _refused(said.section, name, value)
        if reason is not None:
            wrong[name] = Mistake(_where(said, name), reason)
            del values[name]
    return values, wrong


def _refused(section: Section, name: str, value: Any) -> str | None:
    """Why the setting's own check does not let a value pass."""
    setting = section.find(name)
    assert setting is not None
    if setting.check is None or value == setting.default:
        return None
    try:
        setting.check(value)
    except ValueError as error:
        return f"a value of {name} that cannot be" if setting.secret else str(error)
    return None


@cache
def _model_of(name: str, settings: tuple[Setting, ...], texts: bool) -> type[BaseModel]:
    fields: dict[str, Any] = {setting.name: (_kind(setting), setting.default) for setting in settings}
    config = ConfigDict(extra="forbid", strict=not texts, allow_inf_nan=False, str_strip_whitespace=True)
    return create_model(name, __config__=config, **fields)


def _model(section: Section, texts: bool) -> type[BaseModel]:
    return _model_of(section.name, section.settings, texts)


def _kind(setting: Setting) -> Any:
    if setting.choices:
        return Literal[setting.choices]
    if setting.kind in (int, float):
        most = _INT_MAX if setting.most is None else setting.most
        return Annotated[setting.kind, Field(ge=setting.least, le=most)]
    return setting.kind


def _explained(said: Said, name: str, problem: ErrorDetails) -> Mistake:
    setting = said.section.find(name)
    assert setting is not None
    where = _where(said, name)
    given = "what was given" if setting.secret else repr(problem["input"])
    kinds = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    unit = f" ({setting.unit})" if setting.unit and setting.kind in (int, float) else ""
    if problem["type"] == "less_than_equal" and setting.because:
        return Mistake(where, f"{name} must be {setting.most} at most{unit}, not {given}: {setting.because}")
    if setting.choices:
        return Mistake(where, f"{name} is one of {setting.limits}, not {given}")
    limits = f" from {setting.limits}" if setting.limits and setting.kind in (int, float) else ""
    quotes = "; write it without quotes" if not said.texts and isinstance(problem["input"], str) else ""
    return Mistake(where, f"{name} needs {kinds[setting.kind]}{limits}{unit}, not {given}{quotes}")


def _unknown(section: Section, name: str) -> str:
    what = "limit" if section.name.endswith("limits") else "setting"
    near = difflib.get_close_matches(name, [setting.name for setting in section.settings], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; see pythia config reference for those of [{section.name}]"
    return f"there is no {what} {name!r}{hint}"


def _where(said: Said, name: str) -> str:
    return f"{said.origin}, [{said.section.name}] {name}"


def _how_to_give(section: Section, setting: Setting) -> str:
    variable = f", or the variable {setting.environment}" if setting.environment else ""
    return f"give --{setting.name.replace('_', '-')}{variable}, or {setting.name} under [{section.name}] in a file"


def _contradictions(
    section: Section, found: Mapping[str, InForce], faulty: set[str], complete: bool
) -> Iterator[Mistake]:
    """Only those that can be told for certain: not of faulty values, and of defaults alone only where all is known."""
    for names, reason in section.contradictions({name: each.value for name, each in found.items()}):
        given = any(found[name].origin != DEFAULT_ORIGIN for name in names)
        if not faulty.intersection(names) and (complete or given):
            origins = sorted({found[name].origin for name in names} - {DEFAULT_ORIGIN})
            yield Mistake(" and ".join(origins), reason)
