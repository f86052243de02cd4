"""What this release can work with: the levels of an installation, and the version of every format. Pure."""

from versions.formats import FORMATS, Format, FormatNotSpoken
from versions.levels import FIRST_LEVEL, LevelNotSpoken, LevelRange, spoken

__all__ = ["FIRST_LEVEL", "FORMATS", "Format", "FormatNotSpoken", "LevelNotSpoken", "LevelRange", "spoken"]
