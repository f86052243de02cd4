"""The files and connections that this process, and REST beside it, may have open: how many, and of which numbers.

Many systems give a process a soft limit of 1,024 and a hard one far above it. Where the soft one is reached nothing can
be opened any more, the way to ZooKeeper and to the gateway included, which both ends are opened anew now and then: so
whoever opens enough connections would end the primary, without a token, too.
"""

from __future__ import annotations

import logging
import os
import resource

log = logging.getLogger(__name__)

_OTHERS = 256
"""For ZooKeeper, the gateway, TLS handshakes' files, REST and whatever Python opens for a moment."""
_CONNECTIONS_FACTOR = 3
"""Connections that have said hello, those that have not yet, and those that are told that there are too many."""


def hold_standard_descriptors() -> None:
    """Open those that were closed, before anything else takes their numbers: a child gets its own in their place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the lowest number that is free: this one


def raise_descriptor_limit(connections_max: int) -> None:
    """Take what the system allows, and say so where it is less than ``connections_max`` connections may need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    needed = descriptors_needed(connections_max)
    if hard != resource.RLIM_INFINITY and hard < needed:
        log.warning(
            "this process may have %d files and connections open, and with connections_max=%d it may come to need %d: "
            "then nothing can be opened, the way to ZooKeeper included, and it stops serving. Raise the hard limit "
            "(ulimit -Hn, LimitNOFILE of systemd), or lower connections_max",
            hard,
            connections_max,
            needed,
        )


def descriptors_needed(connections_max: int) -> int:
    """How many an oracle with that limit may come to need."""
    return _CONNECTIONS_FACTOR * connections_max + _OTHERS
