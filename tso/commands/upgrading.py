"""``pythia upgrade``: what an installation's level is, what keeps it there, and raising it.

The steps and their safety are in ``lease.raising``; here they are put in order, with the record that lies with the data
between them, and the time that those who read only that one are given to see it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from commit_table.level_record import LevelOfData
from lease import Coordinator, CoordinatorUnavailable, LeaseError, Member
from lease.raising import Attendance, attendance, complete, require_level
from store import CellStore
from versions import LevelRange
from versions.levels import LEVEL_MAX

SEEN_SECONDS: float = 11.0
"""Clients have looked at the record with the data again by then (``client.catalog.age.ENTRY_AGE_SECONDS_MAX``)."""
LOOK_SECONDS = 0.2
WAIT_SECONDS_MAX = 60.0
"""For the holder of the lease, which writes it several times a second, or loses it."""
TRIES_MAX = 20


class CannotRaise(LeaseError):
    """The level stays as it is, or is only required so far; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What an operator asks: the level, up to where it could be raised now, and who keeps it from going higher."""

    level: int
    required: int
    target: int
    members: tuple[Member, ...]
    own: LevelRange
    of_data: int | None

    @property
    def obstacles(self) -> list[str]:
        """Why the level cannot be ``target``, or not be as high as some here work at; a sentence each."""
        behind = self._below(self.target)
        if behind:
            return [f"level {self.target} is required, and not everybody works at it. Upgrade first: {behind}"]
        if self.own.lowest > self.target:  # the members are at most as new: they were let in
            return [
                f"this program ({self.own}) is too new for level {self.target}: take a release that works at that "
                "level and at a later one, once every process is of it"
            ]
        if self.target > self.level:
            return []
        newest = max([self.own.highest, *(member.levels.highest for member in self.members)])
        if newest <= self.level:
            return []
        return [f"not everybody works at level {newest}. Upgrade first: {self._below(newest)}"]

    def _below(self, level: int) -> str:
        behind = [f"{one.holder} ({one.levels})" for one in self.members if one.levels.highest < level]
        return ", ".join(behind + [f"this program ({self.own})"] * (self.own.highest < level))

    @property
    def is_unfinished(self) -> bool:
        """Whether raising it was begun and not brought to its end."""
        return max(self.required, self.of_data or 0) > self.level


def outlook(coordinator: Coordinator, store: CellStore | None, root: str, own: LevelRange) -> Outlook:
    """Look. Raises ``LeaseError``, ``StoreError``, ``FormatNotSpoken``."""
    seen = attendance(coordinator, root)
    of_data = None if store is None else LevelOfData(store, root).read()
    return _outlook(seen, of_data, own)


def finish(
    coordinator: Coordinator,
    store: CellStore,
    root: str,
    own: LevelRange,
    *,
    tell: Callable[[str], None],
    agreed: int = LEVEL_MAX,
    wait: Callable[[float], None] = time.sleep,
) -> int:
    """Raise the level as far as everybody can; the level then. Harmless to repeat, also after it broke off.

    ``agreed``: the highest level that the operator agreed to; where more has become possible since, nothing is done.
    Raises ``CannotRaise``, and what ``outlook`` raises.
    """
    of_data = LevelOfData(store, root)
    for _ in range(TRIES_MAX):
        seen = attendance(coordinator, root)
        found = _outlook(seen, of_data.read(), own)
        target = found.target
        if found.obstacles:
            raise CannotRaise(f"the level stays at {found.level}: {'; '.join(found.obstacles)}")
        if target == found.level and not found.is_unfinished:
            return target
        if target > agreed:
            raise CannotRaise(f"level {target} has become possible since you were asked: nothing was done; ask again")
        if found.required >= target or require_level(coordinator, root, seen, target):
            break
    else:
        raise CannotRaise(f"in {TRIES_MAX} tries a process joined each time: call it again when they have all started")
    tell(f"level {target} is required from now on: processes and clients that do not work at it are refused")
    of_data.raise_to(target)
    tell(f"waiting {SEEN_SECONDS:.0f} s, until every client has seen it")
    wait(SEEN_SECONDS)
    _complete(coordinator, root, target, wait)
    return target


def _complete(coordinator: Coordinator, root: str, target: int, wait: Callable[[float], None]) -> None:
    waited_seconds, reason = 0.0, ""
    while waited_seconds < WAIT_SECONDS_MAX:
        seen = attendance(coordinator, root)
        if seen.level.record.level >= target:
            return
        if seen.level.record.required < target:  # made anew by an oracle, as the data had it before
            raise CoordinatorUnavailable(
                f"ZooKeeper has lost that level {target} is required: call `pythia upgrade finish` again, at once"
            )
        reason = seen.waits_for() or ""
        if not reason and complete(coordinator, root, seen, target):
            return
        wait(LOOK_SECONDS)
        waited_seconds += LOOK_SECONDS
    raise CoordinatorUnavailable(f"{reason or 'the level changes all the time'}: call `pythia upgrade finish` again")


def _outlook(seen: Attendance, of_data: int | None, own: LevelRange) -> Outlook:
    record = seen.level.record
    target = max(seen.target(own), of_data or 0)
    return Outlook(record.level, record.required, target, seen.members, own, of_data)
