"""Variables of the environment that were meant for a setting, and that nobody reads.

An unknown name is no mistake by itself: containers get variables of services that are called as this program is. One
that is nearly a setting's is told, so that nobody goes on at a default without knowing.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Final

from configuration.rooms import all_sections
from configuration.sources import FILE_VARIABLE

PREFIX: Final = "PYTHIA_"
_LIKENESS_MIN: Final = 0.9
"""Of ``difflib``: a letter or two that are missing, changed or too many."""


def misspelt(environment: Mapping[str, str], others: Collection[str]) -> list[str]:
    """A sentence for each such variable. ``others``: what is read beside the settings of the rooms."""
    unknown = {name for name in environment if name.startswith(PREFIX)} - {FILE_VARIABLE, *others}
    if not unknown:
        return []
    read = {FILE_VARIABLE, *others}
    for section in all_sections():
        read |= {section.many_environment, *(setting.environment for setting in section.settings)}
    sentences = []
    for name in sorted(unknown - read):
        near = difflib.get_close_matches(name, sorted(read), n=1, cutoff=_LIKENESS_MIN)
        if near:
            sentences.append(f"nobody reads the variable {name}: did you mean {near[0]}?")
    return sentences
