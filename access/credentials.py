"""What a client shows of itself: read when a connection is made, so that what was replaced is used from then on.

What is not named comes from the environment of the process that connects. So tools, and tasks of Spark, need no options
for it: each finds its own. The invariant: no setting, ``repr``, log line or error has the secret itself; settings name
the file that has it.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from access.tls import BadTls, client_context

TOKEN_VARIABLE: Final = "PYTHIA_TOKEN"
"""Has the secret itself, where there is no file for it."""
VARIABLES: Final[Mapping[str, str]] = {
    "token_file": "PYTHIA_TOKEN_FILE",
    "tls_authority_file": "PYTHIA_CLIENT_TLS_AUTHORITY_FILE",
    "tls_certificate_file": "PYTHIA_CLIENT_TLS_CERTIFICATE_FILE",
    "tls_key_file": "PYTHIA_CLIENT_TLS_KEY_FILE",
    "tls_server_name": "PYTHIA_CLIENT_TLS_SERVER_NAME",
}
"""Where each of the fields below comes from that is empty."""
TOKEN_BYTES_MAX: Final = 1024


class BadCredentials(ValueError):
    """What a client was given to show of itself cannot be used; the text says why, and holds no secret."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where a client's token and TLS files are. Without ``tls_authority_file`` it speaks plain."""

    token_file: str = ""
    tls_authority_file: str = ""
    tls_certificate_file: str = ""
    tls_key_file: str = ""
    tls_server_name: str = ""
    """Whom the server's certificate has to name, if not the host that is dialled."""

    def token(self) -> str:
        """The token, empty where there is none. Raises ``BadCredentials``."""
        path = self._named("token_file")
        return _token_in(path) if path else os.environ.get(TOKEN_VARIABLE, "").strip()

    def tls(self) -> ssl.SSLContext | None:
        """The context for a connection; ``None``: plain. Raises ``BadCredentials``."""
        authority = self._named("tls_authority_file")
        if not authority:
            for field in ("tls_certificate_file", "tls_key_file", "tls_server_name"):
                if self._named(field):  # whoever names these means TLS, and must not get a connection in clear text
                    raise BadCredentials(f"{field} is nothing without tls_authority_file: who signs the certificates")
            return None
        try:
            return client_context(authority, self._named("tls_certificate_file"), self._named("tls_key_file"))
        except BadTls as error:
            raise BadCredentials(str(error)) from error

    def server_name(self, host: str) -> str:
        """Whom the server's certificate has to name."""
        return self._named("tls_server_name") or host

    def _named(self, field: str) -> str:
        named: str = getattr(self, field)
        return named or os.environ.get(VARIABLES[field], "")


def _token_in(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            raw = file.read(TOKEN_BYTES_MAX + 1)
        token = raw.decode("ascii").strip()
    except OSError as error:
        raise BadCredentials(f"token_file {path}: {error.strerror or error}") from error
    except UnicodeDecodeError:
        token = ""
    if len(raw) > TOKEN_BYTES_MAX or len(token.split()) != 1:
        raise BadCredentials(f"token_file {path} has to hold one token and nothing else")
    return token
