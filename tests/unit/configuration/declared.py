"""Settings of no program, to try the reading of settings on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from configuration import Contradiction, Section, setting, settings_of


def is_even(value: int) -> None:
    if value % 2:
        raise ValueError(f"{value} is not even")


@dataclass
class Kettle:
    water_ml: int = setting(
        500, "ml", "Water to boil.", least=1, most=1_700, because="it boils over", environment="K_ML"
    )
    share: float = setting(0.5, "share", "How full.", least=0.1, most=1.0, environment="K_SHARE")
    whistle: bool = setting(False, "", "Whether it whistles.", environment="K_WHISTLE")
    colour: str = setting("red", "", "Its colour.", choices=("red", "blue"), environment="K_COLOUR")
    cups: int = setting(2, "cups", "For whom.", least=0, most=10, check=is_even)
    password: str = setting("", "TEXT", "Who may switch it on.", environment="K_PASSWORD", secret=True)
    pin: int = setting(0, "", "The same in short.", least=0, most=9, environment="K_PIN", secret=True)
    owner: str = setting("", "NAME", "Whose it is.", environment="K_OWNER", required=True)


def contradictions(values: Mapping[str, Any]) -> Iterator[Contradiction]:
    if values["cups"] * 250 > values["water_ml"]:
        yield Contradiction(("cups", "water_ml"), "more cups than water")
    if values["whistle"] and values["colour"] == "blue":
        yield Contradiction(("whistle", "colour"), "blue ones do not whistle")


KETTLE = Section("kettle", "A kettle.", settings_of(Kettle), contradictions)
INNER = Section("kettle.limits", "Its limits.", settings_of(Kettle), lambda _: (), many_environment="K_LIMITS")
