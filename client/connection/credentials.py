"""What a client shows of itself to oracles, from where its settings say that it lies."""

from __future__ import annotations

from access import Credentials
from client.settings import CREDENTIALS, ClientSettings


def credentials_of(settings: ClientSettings) -> Credentials:
    """Nothing is read yet: files are when somebody connects."""
    return Credentials(**{name: getattr(settings, name) for name in CREDENTIALS})
