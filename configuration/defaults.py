"""Defaults that several sections share."""

from typing import Final

DEFAULT_ROOT: Final = "/pythia"
"""Znode of an installation."""
