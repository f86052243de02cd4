"""A client's settings from a file and the environment, for programs that are told where things are from outside.

Apart from `client.settings`, since it needs a library that Spark tasks do not: they get the settings as they are.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from types import MappingProxyType

from access.credentials import TOKEN_VARIABLE
from client.errors import InvalidSettings
from client.settings import CLIENT, ClientSettings
from configuration.checking import in_force
from configuration.misspelt import misspelt
from configuration.rooms import known_tables
from configuration.sources import FILE_VARIABLE, of_environment, of_file, of_flags
from lease.credentials import CREDENTIALS_VARIABLE

_log = logging.getLogger(__name__)


def load_settings(
    file: str | None = None,
    environment: Mapping[str, str] = os.environ,
    *,
    flags: Mapping[str, str | None] = MappingProxyType({}),
) -> ClientSettings:
    """The table ``[client]`` of a TOML file, over which the environment has precedence, and ``flags`` over both.

    ``file``: if not given, the one that ``PYTHIA_CONFIG`` names, if any. Raises ``InvalidSettings`` with every mistake.
    A variable that is nearly one of a setting is logged as a warning.
    """
    file = file or environment.get(FILE_VARIABLE) or None
    said, mistakes = ([], []) if file is None else of_file(file, [CLIENT], known_tables())
    more, wrong = of_environment(environment, [CLIENT])
    found, contradicting = in_force(CLIENT, [*said, *more, *of_flags(CLIENT, flags)], complete=True)
    mistakes = [*mistakes, *wrong, *contradicting]
    if mistakes:
        raise InvalidSettings("; ".join(str(mistake) for mistake in mistakes))
    for sentence in misspelt(environment, (TOKEN_VARIABLE, CREDENTIALS_VARIABLE)):
        _log.warning("%s", sentence)
    return ClientSettings(**{name: each.value for name, each in found.items()})
