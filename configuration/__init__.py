"""What can be chosen: declared once, read from a file, the environment and flags, and explained where it is wrong."""

from configuration.setting import Contradiction, Section, Setting, setting, settings_of

__all__ = ["Contradiction", "Section", "Setting", "setting", "settings_of"]
