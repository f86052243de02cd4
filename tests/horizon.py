"""Waiting until a vacuum may drop what a test has written."""

from __future__ import annotations

from collections.abc import Callable

from client import TransactionManager
from client.vacuum import HorizonUnknown, VacuumReport, run_vacuum
from drills.waiting import wait_until

HORIZON_SECONDS_MAX = 60


def await_horizon(manager: TransactionManager, reached: Callable[[VacuumReport], bool]) -> None:
    """Return once ``reached`` holds of what a vacuum that drops nothing reports."""

    def is_reached() -> bool:
        try:
            return reached(run_vacuum(manager, retain_ms=0, outcomes_retain_ms=0, dry_run=True))
        except HorizonUnknown:
            return False

    wait_until(is_reached, "the horizon of a vacuum", HORIZON_SECONDS_MAX)


def at_once(seconds: float) -> None:
    """In place of a vacuum's wait between its marks and its first delete, for tests in which nobody who has read a
    table just before reads it again below the horizon. ``test_vacuums_under_load`` has those who do, and waits.
    """
