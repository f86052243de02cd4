"""Choosing ports on loopback.

Invariant: a chosen port lies below the range from which systems take ports for outgoing connections, so that between
the choice and the server's bind only another choice could take it; who starts servers tries again for that case.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Collection

from devcluster.errors import PortTaken
from devcluster.settings import LOOPBACK

CHOSEN_FROM = 20_000
CHOSEN_BELOW = 32_000
CHOICES_MAX = 200


def is_free(port: int) -> bool:
    """Whether a server could listen on ``port`` of loopback now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def claim(port: int, purpose: str, option: str, *, avoid: Collection[int] = ()) -> int:
    """``port`` itself where it is free, or for 0 a free one that is none of ``avoid``.

    Raises:
        PortTaken: the given port is in use, or no free one was found.
    """
    if port:
        if not is_free(port):
            raise PortTaken(
                f"port {port} for {purpose} is taken; give another with {option}, or 0 to have a free one chosen"
            )
        return port
    for _ in range(CHOICES_MAX):
        chosen = random.randrange(CHOSEN_FROM, CHOSEN_BELOW)
        if chosen not in avoid and is_free(chosen):
            return chosen
    raise PortTaken(f"no free port for {purpose} between {CHOSEN_FROM} and {CHOSEN_BELOW}; give one with {option}")
