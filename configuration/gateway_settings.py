"""The settings of the way to a gateway that speaks TLS: the same for oracles and for clients, by the same variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from configuration.setting import Contradiction, setting

_MEANINGS: Final[Mapping[str, tuple[str, str]]] = {
    "authority_file": (
        "FILE",
        "Who signs the certificates of gateways that speak TLS (PEM); not given: the authorities of this system.",
    ),
    "certificate_file": ("FILE", "The certificate to show where a gateway's TLS asks for one (PEM)."),
    "key_file": ("FILE", "Its key (PEM, no password); not given: in the certificate's file."),
    "server_name": ("NAME", "Whom a gateway's certificate has to name; not given: the host that is dialled."),
}


def thrift_tls_setting(name: str) -> Any:
    """The field for ``thrift_tls_…``, read again for each connection; what is not set comes from the environment."""
    unit, text = _MEANINGS[name]
    return setting("", unit, text, environment=f"PYTHIA_THRIFT_TLS_{name.upper()}")


def thrift_tls_contradictions(settings: Mapping[str, Any]) -> Iterator[Contradiction]:
    """What does not go together of these and ``thrift``."""
    named = tuple(name for name in map("thrift_tls_{}".format, _MEANINGS) if settings[name])
    if named and settings["thrift"] and "tls://" not in settings["thrift"]:
        yield Contradiction(
            named, f"{named[0]} is for a gateway that speaks TLS: give thrift as tls://host:port, or leave it out"
        )
    if settings["thrift_tls_key_file"] and not settings["thrift_tls_certificate_file"]:
        names = ("thrift_tls_key_file", "thrift_tls_certificate_file")
        yield Contradiction(names, "a key for the gateway without its certificate: give thrift_tls_certificate_file")
