"""What an oracle's settings say of who may come in, made into what lets them in."""

from __future__ import annotations

import logging

from access import Gate, TokensFile
from tso.serving.reception import Reception
from tso.settings import ServeSettings

log = logging.getLogger(__name__)


def reception_of(settings: ServeSettings, now_s: float) -> Reception:
    """Who receives visitors. Raises ``BadTokens`` and ``OSError`` where the file of tokens cannot be used."""
    if not settings.tokens_file:
        log.warning("no tokens_file: everybody who reaches this process may do everything")
        return Reception(Gate())
    tokens = TokensFile(settings.tokens_file, now_s)
    return Reception(Gate(lambda: tokens.current), tokens.refresh)
