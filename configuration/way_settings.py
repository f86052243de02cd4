"""The settings of the way to a gateway or ZooKeeper that speaks TLS or asks for Kerberos: the same for oracles and for
clients.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from configuration.setting import Contradiction, setting

_TLS: Final = re.compile(r"(.*\+)?(tls|https)://")
_KERBEROS: Final = re.compile(r"kerberos(\+(tls|https?))?://")
_KEY: Final = "Its key (PEM, no password); not given: in the certificate's file."
_MEANINGS: Final[Mapping[str, tuple[str, str]]] = {
    "thrift_tls_authority_file": (
        "FILE",
        "Who signs the certificates of gateways that speak TLS (PEM); not given: the authorities of this system.",
    ),
    "thrift_tls_certificate_file": ("FILE", "The certificate to show where a gateway's TLS asks for one (PEM)."),
    "thrift_tls_key_file": ("FILE", _KEY),
    "thrift_tls_server_name": (
        "NAME",
        "Whom a gateway's certificate has to name; not given: the host that is dialled.",
    ),
    "zookeeper_tls_authority_file": (
        "FILE",
        "Who signs the certificates of a ZooKeeper that speaks TLS (PEM); not given: the authorities of this system.",
    ),
    "zookeeper_tls_certificate_file": ("FILE", "The certificate to show where ZooKeeper's TLS asks for one (PEM)."),
    "zookeeper_tls_key_file": ("FILE", _KEY),
    "zookeeper_tls_server_name": ("NAME", "Whom its certificates have to name; not given: the host that is dialled."),
    "thrift_kerberos_service": (
        "NAME",
        "The first part of the principal of gateways that ask for Kerberos; not given: hbase, or HTTP where they "
        "listen for that.",
    ),
    "thrift_kerberos_principal": (
        "NAME",
        "Who this process is to them; not given: whom the keytab names first, or whose tickets there are.",
    ),
    "thrift_kerberos_keytab_file": (
        "FILE",
        "Its key; not given: the tickets of the environment, as kinit leaves them.",
    ),
    "zookeeper_kerberos_service": (
        "NAME",
        "The first part of the principal of a ZooKeeper that asks for Kerberos; not given: zookeeper.",
    ),
    "zookeeper_kerberos_principal": (
        "NAME",
        "Who this process is to it; not given: whom the keytab names first, or whose tickets there are.",
    ),
    "zookeeper_kerberos_keytab_file": (
        "FILE",
        "Its key; not given: the tickets of the environment, as kinit leaves them.",
    ),
}


def way_setting(name: str) -> Any:
    """The field of that name, and the variable by which it is set elsewhere."""
    unit, text = _MEANINGS[name]
    return setting("", unit, text, environment=f"PYTHIA_{name.upper()}")


def way_contradictions(settings: Mapping[str, Any]) -> Iterator[Contradiction]:
    """What does not go together of these and of the services' addresses."""
    for service, called in (("thrift", "gateway"), ("zookeeper", "ZooKeeper")):
        named = tuple(name for name in _MEANINGS if name.startswith(f"{service}_tls_") and settings[name])
        if named and settings[service] and not _TLS.match(settings[service]):
            instead = f"give {service} as tls://host:port, or leave it out"
            yield Contradiction(named, f"{named[0]} is for a {called} that speaks TLS: {instead}")
        certificate, key = f"{service}_tls_certificate_file", f"{service}_tls_key_file"
        if settings[key] and not settings[certificate]:
            yield Contradiction((key, certificate), f"{key} is a key without its certificate: give {certificate}, too")
        named = tuple(name for name in _MEANINGS if name.startswith(f"{service}_kerberos_") and settings[name])
        if named and settings[service] and not _KERBEROS.match(settings[service]):
            instead = f"give {service} as kerberos://host:port, or leave it out"
            yield Contradiction(named, f"{named[0]} is for a {called} that asks for Kerberos: {instead}")
