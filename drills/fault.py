"""What a fault is: something that a drill does to an installation, and undoes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from random import Random
from typing import ClassVar, Final, Generic, TypeVar

from drills.installation import Installation
from drills.oracles import Seat
from drills.site import Place, Site

FAILOVER_SECONDS_MAX: Final = 60.0
"""How long another process may take to become primary."""


class Recovery(Enum):
    """When clients are served again."""

    BY_FAILOVER = "another process takes over while the fault lasts"
    FOR_SOME = "another process takes over while the fault lasts, and not all clients can reach it before it has ended"
    AFTER_HEALING = "nobody can serve before the fault has ended"
    AT_ONCE = "service goes on, at most it gets slower"


SiteT = TypeVar("SiteT", bound=Site[Place])


class AnyFault(ABC, Generic[SiteT]):
    """One fault, inflicted once, on whoever is primary when it is made. ``random`` chooses what is left open.

    Making it waits for a primary: a slow machine may have cost one its lease. Raises ``DrillStalled``.

    ``inflict`` does the harm and ``heal`` undoes it; both return soon, and the drill waits between them for what
    ``recovery`` promises.
    """

    name: ClassVar[str]
    sentence: ClassVar[str]
    recovery: ClassVar[Recovery] = Recovery.BY_FAILOVER
    hold_ms: ClassVar[tuple[int, int]] = (0, 0)
    """How long it lasts at least, once clients are served again (or, where they cannot be, in all)."""

    def __init__(self, installation: SiteT, random: Random) -> None:
        self._installation = installation
        self._random = random
        self.victim: Place = installation.await_primary(0, FAILOVER_SECONDS_MAX)

    @classmethod
    def missing(cls, installation: SiteT) -> str | None:
        """Why the fault cannot be had in this installation; ``None`` where it can."""
        del installation
        return None

    @abstractmethod
    def inflict(self) -> None:
        """Do it. Raises ``DrillError`` where it cannot be done."""

    @abstractmethod
    def heal(self) -> None:
        """Undo it, as far as it can be undone."""


class Fault(AnyFault[Installation]):
    """A fault of an installation of processes."""

    victim: Seat
