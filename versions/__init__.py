"""What this release can work with: the levels of an installation, and the version of every format. Pure."""

from versions.formats import FORMATS, Format, FormatNotSpoken
from versions.levels import FIRST_LEVEL, RELEASE, LevelNotSpoken, LevelRange, spoken

__all__ = ["FIRST_LEVEL", "FORMATS", "RELEASE", "Format", "FormatNotSpoken", "LevelNotSpoken", "LevelRange", "spoken"]
