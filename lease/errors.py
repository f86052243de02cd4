"""What can go wrong between a process and the coordinator that keeps the lease, and what is worth another try."""

from __future__ import annotations


class LeaseError(Exception):
    """Base of all errors of this room. ``retriable``: the same call may succeed later."""

    retriable = False


class CoordinatorUnavailable(LeaseError):
    """The coordinator did not answer within the limit."""

    retriable = True


class CoordinatorRefused(LeaseError):
    """The coordinator refuses the request as such (no permission, quota): an operator has to act."""


class RecordInvalid(LeaseError, ValueError):
    """A stored record cannot be understood. Nobody may serve by it or take over from it until it is mended."""


class MayNotServe(LeaseError):
    """This process may not, and no further try of it will help: its settings, another program or another process has
    to. The text says which.
    """


class LevelRefused(MayNotServe):
    """This program does not work at the installation's level: the text says what to upgrade."""


class DataRefused(MayNotServe):
    """The data that were found are not those of the installation: the text says what to look at."""


class Superseded(MayNotServe):
    """Another process serves where one may serve alone: the text says where."""


class InvalidLeaseSettings(LeaseError, ValueError):
    """Settings under which a lease could not be kept, would not be safe, or has no place; the text says why."""


class StillHeld(LeaseError, RuntimeError):
    """A candidate was asked to try for the lease while its last tenure is still held: release that first."""
