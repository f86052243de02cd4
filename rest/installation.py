"""From what was seen of an installation to what is told of it. Pure.

The invariant: nothing is made up. What nobody told is null or empty, and a process that does not answer is silent,
whatever ZooKeeper still says of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from commit_table.timestamps import milliseconds_of
from fleet import Observed, Report, primary_of
from lease import History, PastTenure
from rest.installation_models import (
    Horizon,
    InstallationMetrics,
    InstallationState,
    LeaseClock,
    MemberState,
    OpenTransaction,
    TenureState,
)
from rest.models import RoleName
from wire import DetailsReply, Role
from wire.details import UNKNOWN_MS

ROLE_NAMES: dict[Role, RoleName] = {Role.PRIMARY: "primary", Role.STANDBY: "standby", Role.DRAINING: "draining"}


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen, and when that was done, in milliseconds: by the wall clock, and by one that is never stepped."""

    wall_ms: int
    monotonic_ms: int
    observed: tuple[Observed, ...]
    history: History
    problems: tuple[str, ...]


def installation_state(look: Look, root: str, own_address: str, *, elected: bool) -> InstallationState:
    """The answer, out of one look."""
    primary = primary_of(look.observed)
    report = None if primary is None else primary.report
    details = None if report is None else report.details
    return InstallationState(
        root=root,
        elected=elected,
        now_ms=look.wall_ms,
        primary="" if report is None else report.status.holder,
        epoch="" if report is None else str(report.status.epoch),
        lease=_lease(look.observed, report),
        members=[_member(one, own_address) for one in look.observed],
        horizon=_horizon(report, look.wall_ms),
        transactions=[] if details is None else _transactions(details, look.wall_ms),
        transaction_life_ms=None if details is None else details.transaction_life_ms,
        history=[_tenure(one) for one in look.history.tenures],
        problems=list(look.problems),
    )


def installation_metrics(look: Look) -> InstallationMetrics:
    """The samples of who serves."""
    primary = primary_of(look.observed)
    if primary is None or primary.report is None:
        return InstallationMetrics(process="", monotonic_ms=look.monotonic_ms, samples={})
    metrics = primary.report.metrics
    samples = dict(zip(metrics.names, metrics.values.tolist(), strict=True))
    return InstallationMetrics(process=metrics.holder, monotonic_ms=primary.at_ms, samples=samples)


def _member(one: Observed, own_address: str) -> MemberState:
    report = one.report
    details = None if report is None else report.details
    return MemberState(
        holder=one.member.holder if report is None else report.status.holder,
        address=one.member.address,
        rest="" if details is None else details.rest_address,
        role="silent" if report is None else ROLE_NAMES[report.status.role],
        warm=one.warm,
        own=one.member.address == own_address,
        connections=None if report is None else report.status.connections,
        problem=one.problem,
        hindrance=one.hindrance,
    )


def _lease(observed: Sequence[Observed], primary: Report | None) -> LeaseClock | None:
    """The primary's own clock; else that of the standby which may take over first."""
    told = [primary] if primary is not None else [one.report for one in observed if one.report is not None]
    clocks = [
        LeaseClock(
            told_by=report.status.holder,
            lease_ms=report.details.lease_ms,
            remaining_ms=report.details.lease_remaining_ms,
        )
        for report in told
        if report.details is not None and report.details.lease_ms != UNKNOWN_MS
    ]
    return min(clocks, key=lambda clock: clock.remaining_ms, default=None)


def _horizon(report: Report | None, now_ms: int) -> Horizon | None:
    if report is None or not report.status.horizon:
        return None
    timestamp = report.status.horizon
    return Horizon(timestamp=str(timestamp), behind_ms=max(0, now_ms - milliseconds_of(timestamp)))


def _transactions(details: DetailsReply, now_ms: int) -> list[OpenTransaction]:
    columns = (column.tolist() for column in (details.start_timestamps, details.snapshots, details.silent_ms))
    return [
        OpenTransaction(
            start_timestamp=str(start),
            snapshot=str(snapshot),
            age_ms=max(0, now_ms - milliseconds_of(start)),
            silent_ms=silent_ms,
        )
        for start, snapshot, silent_ms in zip(*columns, strict=True)
    ]


def _tenure(tenure: PastTenure) -> TenureState:
    return TenureState(
        epoch=str(tenure.epoch),
        holder=tenure.holder,
        address=tenure.address,
        rest=tenure.rest,
        since_ms=tenure.since_ms,
        cause=tenure.cause,
        outage_ms=tenure.outage_ms,
        at_least=tenure.at_least,
    )
