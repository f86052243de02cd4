"""Roles: what a caller may do. Pure.

The invariant: a role that is implied is granted wherever roles are granted, by ``with_implied`` alone, so that whoever
checks for a role looks into one set and thinks no further.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum


class AccessRole(StrEnum):
    """One role. (``wire.Role`` is another thing: what an oracle process is at the moment.)"""

    READ = "read"
    """Outcomes, status, metrics, past snapshots."""
    TRANSACT = "transact"
    """Begin, commit, abort, keep alive; and all that ``read`` may."""
    OPERATE = "operate"
    """Hand over, and what else is an operator's; and all that ``read`` may."""


IMPLIED: Mapping[AccessRole, AccessRole] = {
    AccessRole.TRANSACT: AccessRole.READ,
    AccessRole.OPERATE: AccessRole.READ,
}

EVERY_ROLE = frozenset(AccessRole)


def with_implied(roles: Iterable[AccessRole]) -> frozenset[AccessRole]:
    """The roles and those that they imply."""
    given = frozenset(roles)
    return given | {IMPLIED[role] for role in given if role in IMPLIED}
