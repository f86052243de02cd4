"""Taking one oracle process out: it finishes what is under way, hands over where it is primary, and ends.

Whether somebody is left to take over is looked at here, before anything is asked; that nothing is under way when the
process ends is its own rule (`tso.process`). It is taken for ended when it is a member no more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from access import Credentials
from fleet import (
    ANONYMOUS,
    CannotHandOver,
    NoAnswer,
    NobodyServes,
    NotLetIn,
    Seen,
    ask_status,
    ask_to_drain,
    is_one_ready,
    look,
    nobody_ready,
    nobody_serves,
    observe,
    primary_of,
)
from lease import Coordinator, Member, members
from wire import DrainReply, Role

_STATUS_TIMEOUT_MS = 2_000.0
_LOOK_INTERVAL_SECONDS = 0.1
_END_MS_MAX = 15_000
"""From the answer to the end: connections that linger, REST beside it, the session with ZooKeeper."""


class StillUnderWay(CannotHandOver):
    """The time was up before all was answered: the process serves on."""


@dataclass(frozen=True, slots=True)
class Drained:
    """Who ended, from which role, and who serves now: ``""`` where nobody does, and nobody was to."""

    holder: str
    role: str
    epoch: int
    """That it served in; 0 for a standby."""
    primary: str
    took_ms: float


def drain(
    coordinator: Coordinator,
    root: str,
    address: str,
    *,
    limit_ms: int,
    even_if_last: bool,
    tell: Callable[[str], None],
    credentials: Credentials = ANONYMOUS,
) -> Drained:
    """Drain the process at ``address`` (``""``: the primary). ``tell`` gets a line where the state changes.

    Raises ``CannotHandOver``: no such process, no standby that is ready, still under way; ``LeaseError``.
    """
    began_s = time.monotonic()
    seen = look(coordinator, root, timeout_ms=_STATUS_TIMEOUT_MS, credentials=credentials)
    one = chosen(seen, address)
    if not even_if_last:
        require_successor(seen, one)
        if one.role != "standby":
            standbys = [other.member for other in seen if other.role == "standby"]
            if not is_one_ready(told := observe(standbys, timeout_ms=_STATUS_TIMEOUT_MS, credentials=credentials)):
                raise nobody_ready(one, told, "--even-if-last drains all the same")
    tell(f"{one.member.holder} at {one.member.address}, {one.role}: is asked to take no new work")
    reply = _ask(one, limit_ms, tell, credentials)
    if reply.under_way:
        raise StillUnderWay(
            f"{one.member.holder} serves on: {reply.under_way} transactions were still under way after {limit_ms} ms, "
            f"commits (look at HBase, pythia tso metrics: pythia_commit_persist_seconds) or what REST beside it holds "
            f"for callers (its log says which). Give a longer --timeout-ms, or ask again"
        )
    tell(f"{one.member.holder}: nothing is under way, it ends")
    _wait(lambda: not any(_is_same(member, one.member) for member in members(coordinator, root)), one, "end")
    primary = _successor(coordinator, root, one, reply, even_if_last, credentials)
    return Drained(one.member.holder, one.role, reply.epoch, primary, 1000 * (time.monotonic() - began_s))


def chosen(seen: list[Seen], address: str) -> Seen:
    """The member to drain, which has to answer. Raises ``CannotHandOver``."""
    if not address:
        primary = primary_of(seen)
        if primary is None:
            raise nobody_serves(seen, "name the one to drain, as pythia tso status shows it")
        return primary
    meant = [one for one in seen if address in (one.member.address, one.member.holder)]
    places = sorted({one.member.address for one in meant})
    if len(places) > 1:
        raise CannotHandOver(f"several processes are called {address}: give the address of one, {' or '.join(places)}")
    if not meant:
        there = ", ".join(one.member.address for one in seen) or "none"
        raise CannotHandOver(f"no process here is at {address}; there are: {there}")
    found = meant[0]
    if found.is_closed:
        raise CannotHandOver(found.problem)
    if found.status is None:
        raise NobodyServes(
            f"{found.problem}: it cannot be asked to finish; end it with SIGTERM, or find out what it does"
        )
    return found


def require_successor(seen: list[Seen], one: Seen) -> None:
    """Raise ``CannotHandOver`` where nobody could take over from ``one``, or would be left to."""
    others = [other for other in seen if other is not one]
    if one.role == "standby":
        if not any(other.role == "primary" for other in others):
            raise CannotHandOver(
                f"no primary answers, and {one.member.holder} may be about to take over: wait until one does, or give "
                f"--even-if-last"
            )
    elif not any(other.role == "standby" for other in others):
        raise CannotHandOver(
            f"no standby answers that could take over from {one.member.holder}: start one first, or give "
            f"--even-if-last to end the service"
        )


def _is_same(one: Member, other: Member) -> bool:
    """Whatever their roles, which change."""
    return (one.holder, one.address) == (other.holder, other.address)


def _ask(one: Seen, limit_ms: int, tell: Callable[[str], None], credentials: Credentials) -> DrainReply:
    """Ask, and meanwhile tell how much is under way."""
    answered = threading.Event()
    watching = threading.Thread(target=_watch, args=(one, answered, tell, credentials), daemon=True)
    watching.start()
    try:
        return ask_to_drain(one.member.address, limit_ms, credentials)
    except NotLetIn as error:
        raise CannotHandOver(str(error)) from error
    except NoAnswer as error:
        raise CannotHandOver(f"{error}; look at pythia tso status before asking again") from error
    finally:
        answered.set()
        watching.join()


def _watch(one: Seen, answered: threading.Event, tell: Callable[[str], None], credentials: Credentials) -> None:
    told = 0
    while not answered.wait(_LOOK_INTERVAL_SECONDS):
        try:
            status = ask_status(one.member.address, _STATUS_TIMEOUT_MS, credentials)
        except NoAnswer:
            return
        if status.role is Role.DRAINING and status.transactions_in_flight != told:
            told = status.transactions_in_flight
            tell(f"{one.member.holder}: {told} transactions under way")


def _wait(done: Callable[[], bool], one: Seen, what: str) -> None:
    ends_s = time.monotonic() + _END_MS_MAX / 1000
    while not done():
        if time.monotonic() > ends_s:
            raise NobodyServes(
                f"{one.member.holder} has finished its work, and did not {what} within {_END_MS_MAX} ms: look at its "
                f"log, and at pythia tso status"
            )
        time.sleep(_LOOK_INTERVAL_SECONDS)


def _successor(
    coordinator: Coordinator, root: str, one: Seen, reply: DrainReply, even_if_last: bool, credentials: Credentials
) -> str:
    """Who serves now; waits for it where somebody stood by."""
    found = ""

    def serves() -> bool:
        nonlocal found
        others = look(coordinator, root, timeout_ms=_STATUS_TIMEOUT_MS, credentials=credentials)
        serving = primary_of(others)
        found = serving.member.holder if serving is not None and serving.role == "primary" else ""
        return bool(found) or (even_if_last and not any(other.role == "standby" for other in others))

    _wait(serves, one, "find a successor" if reply.epoch else "leave a primary behind")
    return found
