"""What the oracles of an installation told, and which of them is believed to serve. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from lease import Member
from wire import DetailsReply, MetricsReply, Role, StatusReply


@dataclass(frozen=True, slots=True)
class Report:
    """All that one process tells of itself; ``details``: ``None`` from one of a release that knows no such question."""

    status: StatusReply
    metrics: MetricsReply
    details: DetailsReply | None
    hindrance: str = ""
    """What keeps it from becoming primary, in its words; empty: nothing that it knows of, or tells."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One member, and what it answered; ``problem`` where it did not."""

    member: Member
    status: StatusReply | None
    problem: str = ""
    is_closed: bool = False
    """Whether it does not let us in: nothing is known of it, and nothing need be wrong with it."""

    @property
    def role(self) -> str:
        """In words; ``"silent"`` for one that does not answer."""
        return "silent" if self.status is None else self.status.role.name.lower()


@dataclass(frozen=True, slots=True)
class Observed:
    """One member, and all that it told; ``problem`` where it told nothing."""

    member: Member
    report: Report | None
    at_ms: int
    """When it had told, by this process's clock that is never stepped, in milliseconds."""
    problem: str = ""

    @property
    def status(self) -> StatusReply | None:
        """Of what it told."""
        return None if self.report is None else self.report.status

    @property
    def warm(self) -> bool | None:
        """Whether it could take over at once, or serves; ``None`` where it told nothing of that."""
        details = None if self.report is None else self.report.details
        return None if details is None else details.warm

    @property
    def hindrance(self) -> str:
        """What keeps it from becoming primary; empty: nothing that is known."""
        return "" if self.report is None else self.report.hindrance


class _Told(Protocol):
    """A member, and the status that it told, if any."""

    @property
    def status(self) -> StatusReply | None: ...


ToldSo = TypeVar("ToldSo", bound=_Told)


def primary_of(told: Iterable[ToldSo]) -> ToldSo | None:
    """Of those who say that they serve, or finish what they served, the one of the newest epoch.

    Another has yet to notice that it is deposed.
    """
    serving = {one.status.epoch: one for one in told if one.status is not None and one.status.role is not Role.STANDBY}
    return serving[max(serving)] if serving else None
