"""How a setting is declared: name, unit, default, limits and meaning in one place, at the field that holds it.

Everything else follows from the declarations: the help of the command line, the table in the documentation, what a file
may say, and what is told about a mistake. Pure, and without any library, since clients in Spark tasks import it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

Value = TypeVar("Value")

_KEY = "setting"


class Contradiction(tuple[tuple[str, ...], str]):
    """Settings that do not go together: their names, and the reason. No names: something is missing."""

    def __new__(cls, names: tuple[str, ...], reason: str) -> Contradiction:
        """Of these names, for this reason."""
        return super().__new__(cls, (names, reason))


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. ``kind`` is ``int``, ``float``, ``str`` or ``bool``."""

    name: str
    kind: type
    default: Any
    unit: str
    """Of a number: ``ms``, ``bytes``, ``transactions`` …; of a text: what it looks like."""
    text: str
    """What it is for, in one line."""
    least: float | None = None
    most: float | None = None
    because: str = ""
    """Why no more than ``most``."""
    choices: tuple[str, ...] = ()
    check: Callable[[Any], object] | None = None
    """Raises ``ValueError`` where a value that is set cannot be."""
    environment: str = ""
    """The variable it may come from; empty: from none of its own."""
    secret: bool = False
    """Whether its value is never shown."""
    required: bool = False

    @property
    def limits(self) -> str:
        """What it may be, in words."""
        if self.choices:
            return ", ".join(self.choices)
        if self.kind is bool:
            return "true, false"
        if self.least is None or self.most is None:
            return ""
        return f"{_number(self.least)} to {_number(self.most)}"

    def shown(self, value: Any) -> str:
        """A value of it as people may see it."""
        if self.secret and value != self.default:
            return "(hidden)"
        if isinstance(value, bool):
            return str(value).lower()
        return _number(value) if isinstance(value, int | float) else str(value)


@dataclass(frozen=True, slots=True)
class Section:
    """The settings of one table of a file, such as ``[oracle.limits]``."""

    name: str
    text: str
    settings: tuple[Setting, ...]
    contradictions: Callable[[Mapping[str, Any]], Iterable[Contradiction]]
    """Gets a value for each setting."""
    many_environment: str = ""
    """A variable that holds any number of them, as ``name=value``."""

    def find(self, name: str) -> Setting | None:
        """The setting of that name."""
        return next((each for each in self.settings if each.name == name), None)


def setting(default: Value, unit: str, text: str, **more: Any) -> Value:
    """Declare a dataclass's field to be a setting; ``more``: as in ``Setting``. To a type checker it is its default."""
    metadata = {_KEY: {"unit": unit, "text": text, **more}}
    return dataclasses.field(default=default, metadata=metadata)


def settings_of(declared: type, environment: str = "") -> tuple[Setting, ...]:
    """The settings among a dataclass's fields, in their order.

    ``environment``: what the variables start with of those that do not name theirs; empty: they have none.
    """
    return tuple(
        Setting(field.name, type(field.default), field.default, **_named(field.name, field.metadata[_KEY], environment))
        for field in dataclasses.fields(declared)
        if _KEY in field.metadata
    )


def first_problem(section: Section, values: Mapping[str, Any]) -> str | None:
    """What is wrong with values for all settings of a section, all of which are numbers; ``None``: nothing."""
    for each in section.settings:
        value = values[each.name]
        if not (value > 0 or value == each.least):
            return f"{each.name} must be {'0 or ' * (each.least == 0)}larger than 0, not {value}"
        if each.most is not None and not value <= each.most:
            return f"{each.name} must be {each.most} at most, not {value}: {each.because}"
    return next((reason for _, reason in section.contradictions(values)), None)


def _named(name: str, declared: Mapping[str, Any], environment: str) -> dict[str, Any]:
    return {"environment": f"{environment}{name.upper()}" if environment else "", **declared}


def _number(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
