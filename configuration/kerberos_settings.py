"""The settings of the way to gateways that ask for Kerberos: the same for oracles and for clients."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from configuration.setting import Contradiction, setting

_SPOKEN: Final = re.compile(r"kerberos(\+tls)?://")
_MEANINGS: Final[Mapping[str, tuple[str, str]]] = {
    "thrift_kerberos_service": (
        "NAME",
        "The first part of the principal of gateways that ask for Kerberos; not given: hbase.",
    ),
    "thrift_kerberos_principal": (
        "NAME",
        "Who this process is to them; not given: whom the keytab names first, or whose tickets there are.",
    ),
    "thrift_kerberos_keytab_file": (
        "FILE",
        "Its key; not given: the tickets of the environment, as kinit leaves them.",
    ),
}


def kerberos_setting(name: str) -> Any:
    """The field of that name, and the variable by which it is set elsewhere."""
    unit, text = _MEANINGS[name]
    return setting("", unit, text, environment=f"PYTHIA_{name.upper()}")


def kerberos_contradictions(settings: Mapping[str, Any]) -> Iterator[Contradiction]:
    """What does not go together of these and of the gateways' addresses."""
    named = tuple(name for name in _MEANINGS if settings[name])
    if named and settings["thrift"] and not _SPOKEN.match(settings["thrift"]):
        instead = "give thrift as kerberos://host:port, or leave it out"
        yield Contradiction(named, f"{named[0]} is for a gateway that asks for Kerberos: {instead}")
