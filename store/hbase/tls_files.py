"""Where the files lie by which a client speaks TLS to gateways; nothing is read here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

VARIABLES: Final[Mapping[str, str]] = {
    "authority_file": "PYTHIA_THRIFT_TLS_AUTHORITY_FILE",
    "certificate_file": "PYTHIA_THRIFT_TLS_CERTIFICATE_FILE",
    "key_file": "PYTHIA_THRIFT_TLS_KEY_FILE",
    "server_name": "PYTHIA_THRIFT_TLS_SERVER_NAME",
}
"""Where each of the fields below comes from that is empty: the environment of the process that connects."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Files (PEM) for the way to gateways that speak TLS. Without ``authority_file`` the system's authorities sign."""

    authority_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    """Empty: in the certificate's file."""
    server_name: str = ""
    """Whom the gateway's certificate has to name, if not the host that is dialled."""

    @classmethod
    def named_in(cls, settings: object) -> TlsFiles:
        """By the fields ``thrift_tls_…`` of settings."""
        return cls(*(getattr(settings, f"thrift_tls_{name}") for name in VARIABLES))
