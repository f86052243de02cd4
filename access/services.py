"""The services that are not ours, ZooKeeper and HBase's gateway: what there is to set of the way to each, and where.

Each value has one name among the settings and one variable of the environment. What settings leave out comes from the
environment of the process that connects, which for a task of Spark is another one than that which made the settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Final, Self

GATEWAY: Final = "thrift"
ZOOKEEPER: Final = "zookeeper"
TLS: Final = "tls://"
"""Before the address of what speaks TLS."""
KERBEROS: Final = "kerberos://"
"""Before the address of what asks for Kerberos."""
KERBEROS_AND_TLS: Final = "kerberos+tls://"
HTTP: Final = "http://"
HTTPS: Final = "https://"
"""Before the address of what speaks HTTP, and HTTP over TLS."""
CALLED: Final[Mapping[str, str]] = {GATEWAY: "gateway", ZOOKEEPER: "ZooKeeper"}


@dataclass(frozen=True, slots=True)
class WaySettings:
    """Texts about the way to a service, each a field; empty: nothing is said of it."""

    kind: ClassVar[str]
    """What of the way they are about; a part of their names."""

    @classmethod
    def setting(cls, service: str, field: str) -> str:
        """The name of the setting for a field."""
        return f"{service}_{cls.kind}_{field}"

    @classmethod
    def variable(cls, service: str, field: str) -> str:
        """The variable of the environment for it."""
        return f"PYTHIA_{cls.setting(service, field).upper()}"

    @classmethod
    def settings(cls, *services: str) -> tuple[str, ...]:
        """The names of all of them."""
        return tuple(cls.setting(service, field.name) for service in services for field in fields(cls))

    @classmethod
    def named_in(cls, settings: object, service: str) -> Self:
        """By the fields of settings."""
        return cls(**{each.name: getattr(settings, cls.setting(service, each.name)) for each in fields(cls)})

    def completed(self, environment: Mapping[str, str], service: str) -> Self:
        """What is empty comes from the environment."""
        from_there = {each.name: environment.get(self.variable(service, each.name), "") for each in fields(self)}
        return type(self)(**{**from_there, **self.named()})

    def unspoken(self, service: str, means: str, before: str) -> str:
        """What to say of the first that is named where no address says that it ``means`` this; empty: none is named.

        ``before``: what stands before an address that does.
        """
        for name in self.named():
            return (
                f"{self.setting(service, name)} ({self.variable(service, name)}) is for a {CALLED[service]} that "
                f"{means}, and its address says nothing of that: give {before}host:port, or unset it"
            )
        return ""

    def named(self) -> dict[str, str]:
        """Those that are not empty, by the names of their fields."""
        return {each.name: getattr(self, each.name) for each in fields(self) if getattr(self, each.name)}


@dataclass(frozen=True, slots=True)
class TlsFiles(WaySettings):
    """Files (PEM) for the way to a service that speaks TLS. Without ``authority_file`` the system's are believed."""

    kind: ClassVar[str] = "tls"

    authority_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    """Empty: in the certificate's file."""
    server_name: str = ""
    """Whom the server's certificate has to name, if not the host that is dialled."""


@dataclass(frozen=True, slots=True)
class Kerberos(WaySettings):
    """Who a client is to a service that asks for Kerberos, and whom it expects there."""

    kind: ClassVar[str] = "kerberos"

    service: str = ""
    """The first part of the other side's principal, ``SERVICE/HOST@REALM``; empty: what is usual."""
    principal: str = ""
    """The client's own; empty: the first of the keytab, or the one whose tickets are the environment's default."""
    keytab_file: str = ""
    """Its key, by which tickets are fetched and kept in memory; empty: tickets of the environment (``kinit``)."""


def settings_of_services() -> tuple[str, ...]:
    """The names of all that there is to set."""
    return (*TlsFiles.settings(GATEWAY, ZOOKEEPER), *Kerberos.settings(GATEWAY, ZOOKEEPER))
