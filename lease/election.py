"""What a process that wants to serve needs of an election, however it is held: by a lease, or alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from lease.records import LeaseRecord


class Holding(Protocol):
    """The right to serve, with the timestamps ``epoch <= timestamp < ceiling``. ``Tenure`` is one, ``SoloTenure``, too.

    The properties and ``is_held`` may be asked by any thread; ``renew`` and ``release`` belong to one.
    """

    @property
    def epoch(self) -> int:
        """The first timestamp of the range; it names the epoch and is never handed out itself."""
        ...

    @property
    def ceiling(self) -> int:
        """The exclusive upper bound of the timestamps that may be handed out; only ever moves up."""
        ...

    def is_held(self) -> bool:
        """Whether this process may serve; no I/O, and false is final."""
        ...

    def remaining_ms(self) -> float:
        """For how long it holds without another renewal; infinite where it does not end by itself."""
        ...

    def renew(self, *, reached: int = 0, durable: int = 0) -> bool:
        """Re-assert it, and move the ceiling up where it is near; false: it is lost for good."""
        ...

    def release(self) -> None:
        """Stop holding, and let others know. Raises nothing."""
        ...


@dataclass(frozen=True, slots=True)
class StandBy:
    """Not now: ``primary`` holds the lease (``None``: nobody, or not known); try again after ``wait_ms``.

    ``problem`` says why nothing is known, when nobody answered. ``seen_ms``: since when the lease has been seen as it
    is, by the candidate's monotonic clock; ``None``: it was not read.
    """

    primary: LeaseRecord | None
    wait_ms: float
    problem: str | None = None
    seen_ms: float | None = None


class Contender(Protocol):
    """One process's part in an election. ``attempt`` and ``join`` belong to one thread; ``wake`` to any."""

    def join(self, role: str) -> None:
        """Show this process to others in ``role``; call again to change it."""
        ...

    def attempt(self) -> Holding | StandBy:
        """Become the one who serves if the rules allow it now. Raises ``LeaseError``."""
        ...

    def wait(self, wait_ms: float) -> None:
        """Wait ``wait_ms``; return early when another attempt may go better, or on ``wake``."""
        ...

    def wake(self) -> None:
        """Make ``wait`` return, now or when it is next called."""
        ...
