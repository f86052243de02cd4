"""All oracle processes of an installation, as an operator sees them, and the hand-over from one to another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from access import Credentials
from fleet.asking import ANONYMOUS, NoAnswer, NotLetIn, ask_everything, ask_status, ask_to_hand_over
from fleet.told import Observed, Seen, primary_of
from lease import Coordinator, Member, members
from wire import Role

_LOOK_INTERVAL_SECONDS = 0.01
_READY_INTERVAL_SECONDS = 0.1
_STATUS_TIMEOUT_MS_MAX = 2_000.0
ASKED_AT_ONCE_MAX = 8

SeenSo = TypeVar("SeenSo")


class CannotHandOver(Exception):
    """Nothing was handed over, or drained; the text says why, and what to do."""


class NobodyServes(CannotHandOver):
    """No process is primary."""


class HandoverUncertain(CannotHandOver):
    """The primary was asked, and no successor was seen: the lease may have been released, or may yet be, or it took it
    back.
    """


@dataclass(frozen=True, slots=True)
class Handover:
    """Who gave the lease to whom, and the epochs.

    ``took_ms``: from the question until the next one was seen to serve. At first the old one still serves, and finishes
    what is under way: how long nobody did is shorter, and measured by the new one (``lease.History``).
    """

    from_holder: str
    to_holder: str
    from_epoch: int
    to_epoch: int
    took_ms: float


def look(coordinator: Coordinator, root: str, *, timeout_ms: float, credentials: Credentials = ANONYMOUS) -> list[Seen]:
    """Ask every member, several at once; ``timeout_ms`` for each. Raises ``LeaseError``."""
    return _of_each(members(coordinator, root), lambda member: _seen(member, timeout_ms, credentials))


def observe(asked: Sequence[Member], *, timeout_ms: float, credentials: Credentials = ANONYMOUS) -> list[Observed]:
    """Have each member tell all that it has to tell, several at once; ``timeout_ms`` for each. Raises nothing."""
    return _of_each(asked, lambda member: _observed(member, timeout_ms, credentials))


def addresses(coordinator: Coordinator, root: str) -> list[str]:
    """Where the members are reached. Raises ``LeaseError``."""
    return [member.address for member in members(coordinator, root)]


def hand_over(
    coordinator: Coordinator, root: str, *, timeout_ms: float, credentials: Credentials = ANONYMOUS
) -> Handover:
    """Wait for a standby that is ready, have the primary finish what is under way and release its lease, and wait for
    the next one.

    ``timeout_ms``: for all of it, half of it for a standby to get ready. Raises ``CannotHandOver`` where nothing was
    done, ``HandoverUncertain`` where that is not known, ``LeaseError``.
    """
    ends_s = time.monotonic() + timeout_ms / 1000
    seen = look(coordinator, root, timeout_ms=min(_STATUS_TIMEOUT_MS_MAX, timeout_ms), credentials=credentials)
    primary = primary_of(seen)
    standbys = [one for one in seen if one.role == "standby"]
    if primary is None:
        raise nobody_serves(seen, "look at pythia tso status")
    if primary.role == "draining":
        raise CannotHandOver(
            f"{primary.member.holder} finishes what is under way already, to hand over or to end: look at pythia tso "
            "status before asking again"
        )
    if not standbys:
        raise CannotHandOver(f"no standby answers that could take over from {primary.member.holder}: start one first")
    _wait_for_one_ready(primary, [one.member for one in standbys], timeout_ms / 2, credentials)
    began_s = time.monotonic()
    try:
        epoch = ask_to_hand_over(primary.member.address, 1000 * (ends_s - began_s), credentials)
    except NotLetIn as error:
        raise CannotHandOver(str(error)) from error
    except NoAnswer as error:
        raise HandoverUncertain(str(error)) from error
    while time.monotonic() < ends_s:
        for one in (*standbys, primary):
            status = _seen(one.member, 1000 * (ends_s - time.monotonic()), credentials).status
            if status is not None and status.role is Role.PRIMARY and status.epoch > epoch:
                if one is primary:
                    raise HandoverUncertain(
                        f"{status.holder} gave the lease back, and took it again in epoch {status.epoch}, since no "
                        "standby did: look at their logs, and wait until pythia tso status calls one warm"
                    )
                took_ms = 1000 * (time.monotonic() - began_s)
                return Handover(primary.member.holder, status.holder, epoch, status.epoch, took_ms)
        time.sleep(_LOOK_INTERVAL_SECONDS)
    raise HandoverUncertain(
        f"{primary.member.holder} released the lease, and nobody took it within {timeout_ms:.0f} ms: look at the logs "
        "of the standbys"
    )


def is_one_ready(standbys: Iterable[Observed]) -> bool:
    """Whether one of them could take over at once: clients of a primary that ends would wait for any other.

    One of a release that does not tell how warm it is counts as ready: it cannot be waited for.
    """
    told = [standby for standby in standbys if standby.report is not None]
    return any(standby.warm is not False and not standby.hindrance for standby in told)


def nobody_ready(primary: Seen, standbys: Iterable[Observed], advice: str) -> CannotHandOver:
    """The error where each of ``standbys`` is still getting ready."""
    each = ", ".join(": ".join(filter(None, (standby.member.holder, standby.hindrance))) for standby in standbys)
    return CannotHandOver(
        f"no standby is ready to take over from {primary.member.holder} yet ({each}): wait until pythia tso status "
        f"calls one warm, and ask again. Its log says what it lacks; {advice}"
    )


def nobody_serves(seen: Sequence[Seen], advice: str) -> CannotHandOver:
    """The error where no primary was seen: there may be one that does not let us in, and that is another matter."""
    closed = [one.problem for one in seen if one.is_closed]
    if closed:
        return CannotHandOver(f"no process that lets this program in is primary: {'; '.join(closed)}")
    return NobodyServes(f"no process is primary now: {advice}")


def _wait_for_one_ready(primary: Seen, standbys: Sequence[Member], limit_ms: float, credentials: Credentials) -> None:
    ends_s = time.monotonic() + limit_ms / 1000
    each_ms = min(_STATUS_TIMEOUT_MS_MAX, limit_ms)
    while not is_one_ready(told := observe(standbys, timeout_ms=each_ms, credentials=credentials)):
        if time.monotonic() > ends_s:
            raise nobody_ready(primary, told, f"SIGTERM to {primary.member.holder} hands over all the same")
        time.sleep(_READY_INTERVAL_SECONDS)


def _seen(member: Member, timeout_ms: float, credentials: Credentials) -> Seen:
    try:
        return Seen(member, ask_status(member.address, max(1.0, timeout_ms), credentials))
    except NoAnswer as error:
        return Seen(member, None, str(error), isinstance(error, NotLetIn))


def _observed(member: Member, timeout_ms: float, credentials: Credentials) -> Observed:
    report, problem = None, ""
    try:
        report = ask_everything(member.address, timeout_ms, credentials)
    except NoAnswer as error:
        problem = str(error)
    return Observed(member, report, _monotonic_ms(), problem)


def _monotonic_ms() -> int:
    return int(time.monotonic() * 1000)


def _of_each(asked: Sequence[Member], ask: Callable[[Member], SeenSo]) -> list[SeenSo]:
    if not asked:
        return []
    with ThreadPoolExecutor(min(len(asked), ASKED_AT_ONCE_MAX), thread_name_prefix="look") as threads:
        return list(threads.map(ask, asked))
