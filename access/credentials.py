"""What a client shows of itself: read when a connection is made, so that what was replaced is used from then on.

The invariant: no setting, ``repr``, log line or error has the secret itself; settings name the file that has it.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from access.tls import BadTls, client_context

TOKEN_VARIABLE: Final = "PYTHIA_TOKEN"
"""Has the secret itself, where there is no file for it."""
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

    def tls(self) -> ssl.SSLContext | None:
        """The context for a connection; ``None``: plain. Raises ``BadCredentials``."""
        if not self.tls_authority_file:
            return None
        try:
            return client_context(self.tls_authority_file, self.tls_certificate_file, self.tls_key_file)
        except BadTls as error:
            raise BadCredentials(str(error)) from error

    def server_name(self, host: str) -> str:
        """Whom the server's certificate has to name."""
        return self.tls_server_name or host

    def token(self) -> str:
        """The token, empty where there is none. Raises ``BadCredentials``."""
        if not self.token_file:
            return os.environ.get(TOKEN_VARIABLE, "").strip()
        try:
            with Path(self.token_file).open("rb") as file:
                raw = file.read(TOKEN_BYTES_MAX + 1)
            token = raw.decode("ascii").strip()
        except OSError as error:
            raise BadCredentials(f"token_file {self.token_file}: {error.strerror or error}") from error
        except UnicodeDecodeError:
            token = ""
        if len(raw) > TOKEN_BYTES_MAX or len(token.split()) != 1:
            raise BadCredentials(f"token_file {self.token_file} has to hold one token and nothing else")
        return token
