"""Where the files lie by which a client speaks TLS to ZooKeeper or to HBase's gateway; nothing is read here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

TLS: Final = "tls://"
"""Before the address of what speaks TLS."""
GATEWAY: Final = "thrift"
ZOOKEEPER: Final = "zookeeper"
CALLED: Final[Mapping[str, str]] = {GATEWAY: "gateway", ZOOKEEPER: "ZooKeeper"}
FIELDS: Final = ("authority_file", "certificate_file", "key_file", "server_name")
"""What there is to set of each service."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Files (PEM) for the way to a service that speaks TLS. Without ``authority_file`` the system's are believed."""

    authority_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    """Empty: in the certificate's file."""
    server_name: str = ""
    """Whom the server's certificate has to name, if not the host that is dialled."""

    @classmethod
    def named_in(cls, settings: object, service: str) -> TlsFiles:
        """By the fields ``{service}_tls_…`` of settings."""
        return cls(**{name: getattr(settings, setting_of(service, name)) for name in FIELDS})

    def completed(self, environment: Mapping[str, str], service: str) -> TlsFiles:
        """What is empty comes from the environment, which is that of the process that connects."""
        from_there = {name: environment.get(variable_of(service, name), "") for name in FIELDS}
        return TlsFiles(**{**from_there, **self.named()})

    def named(self) -> dict[str, str]:
        """Those that are not empty, by the names of their fields."""
        return {name: getattr(self, name) for name in FIELDS if getattr(self, name)}


def setting_of(service: str, field: str) -> str:
    """The name of the setting for a field."""
    return f"{service}_tls_{field}"


def settings_of_services() -> tuple[str, ...]:
    """The names of all of them."""
    return tuple(setting_of(service, field) for service in (GATEWAY, ZOOKEEPER) for field in FIELDS)


def variable_of(service: str, field: str) -> str:
    """The variable of the environment for it."""
    return f"PYTHIA_{setting_of(service, field).upper()}"
