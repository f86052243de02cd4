"""A client's settings from a file and the environment, for programs that are told where things are from outside.

Apart from `client.settings`, since it needs a library that Spark tasks do not: they get the settings as they are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from client.errors import InvalidSettings
from client.settings import CLIENT, ClientSettings
from configuration.checking import in_force
from configuration.rooms import known_tables
from configuration.sources import FILE_VARIABLE, of_environment, of_file


def load_settings(file: str | None = None, environment: Mapping[str, str] = os.environ) -> ClientSettings:
    """The table ``[client]`` of a TOML file, over which the environment has precedence.

    ``file``: if not given, the one that ``PYTHIA_CONFIG`` names, if any. Raises ``InvalidSettings`` with every mistake.
    """
    file = file or environment.get(FILE_VARIABLE) or None
    said, mistakes = ([], []) if file is None else of_file(file, [CLIENT], known_tables())
    more, wrong = of_environment(environment, [CLIENT])
    found, contradicting = in_force(CLIENT, [*said, *more], complete=True)
    mistakes = [*mistakes, *wrong, *contradicting]
    if mistakes:
        raise InvalidSettings("; ".join(str(mistake) for mistake in mistakes))
    return ClientSettings(**{name: each.value for name, each in found.items()})
