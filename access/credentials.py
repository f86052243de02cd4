"""What a client shows of itself: read when a connection is made, so that what was replaced is used from then on.

The invariant: no setting, ``repr``, log line or error has the secret itself; settings name the file that has it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TOKEN_VARIABLE: Final = "PYTHIA_TOKEN"
"""Has the secret itself, where there is no file for it."""
TOKEN_BYTES_MAX: Final = 1024


class BadCredentials(ValueError):
    """What a client was given to show of itself cannot be used; the text says why, and holds no secret."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where a client's token is. Each is read anew for each connection."""

    token_file: str = ""

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
