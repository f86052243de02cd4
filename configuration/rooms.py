"""Which tables a configuration file may have: each room that has settings declares them at an entry point.

So no room imports another for its settings, and a program knows which tables are for others without loading them.
"""

from __future__ import annotations

from importlib.metadata import entry_points

from configuration.setting import Section

GROUP = "pythia.settings"


def known_tables() -> list[str]:
    """The outermost tables that some program reads."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def all_sections() -> list[Section]:
    """The sections of all rooms that can be loaded, by name. What cannot is an extra that is not installed."""
    sections: list[Section] = []
    for entry in entry_points(group=GROUP):
        try:
            sections += entry.load()
        except ModuleNotFoundError:
            continue
    return sorted(sections, key=lambda section: section.name)
