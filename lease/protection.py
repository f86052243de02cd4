"""Who may change an installation's znodes: what they grant, whether that will do, and having it granted to one alone.

With credentials every node is made so that its maker may do everything and everybody else may read: clients only read.
ZooKeeper never refuses a password as such (another password is another identity), so that a wrong one shows here, by
what the nodes grant, before the process takes part; and nodes that anybody may write are refused, too. ``judge`` is
pure. Invariant: protecting changes what is granted and nothing else; versions, and so every compare-and-set, stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

from lease.errors import CoordinatorRefused
from lease.paths import ZnodePaths

NODES_MAX: Final = 10_000
ROUNDS_MAX: Final = 10
TIMEOUT_MS: Final = 5000
_MASKED: Final = "x"
"""What ZooKeeper shows in place of a digest to who may not change what a node grants."""


class Grant(NamedTuple):
    """One entry of what a node grants: to ``identity`` of ``scheme``, ``everything``, or at least some ``change``."""

    scheme: str
    identity: str
    change: bool
    everything: bool


class Holder(Enum):
    """Whose a node is to change."""

    ANYBODY = "anybody"
    OURS = "ours"
    SOMEBODY = "somebody else"


class Guarded(Protocol):
    """What protecting asks of ZooKeeper. Each call raises ``CoordinatorUnavailable`` or ``CoordinatorRefused``."""

    @property
    def user(self) -> str | None:
        """As whom its session is known; ``None``: as nobody."""

    def children(self, path: str, *, timeout_ms: float) -> list[str]:
        """See ``Coordinator.children``."""

    def grants(self, path: str, *, timeout_ms: float) -> Sequence[Grant] | None:
        """What a node grants; ``None``: there is no such node."""

    def protect(self, path: str, *, timeout_ms: float) -> None:
        """Have a node grant everything to this session's identity, and reading to everybody; harmless where gone."""


def judge(grants: Iterable[Grant], user: str | None) -> Holder:
    """Whose a node with these grants is, to a session known as ``user``."""
    ours = False
    for grant in grants:
        if grant.scheme == "world" and grant.change:
            return Holder.ANYBODY
        name, _, digest = grant.identity.partition(":")
        ours = ours or (grant.scheme == "digest" and name == user and digest != _MASKED and grant.everything)
    return Holder.OURS if ours else Holder.SOMEBODY


def require_protection(guarded: Guarded, root: str, *, may_be_open: bool = False) -> None:
    """Raise ``CoordinatorRefused`` where this session could not take part, or where anybody could change the nodes.

    ``may_be_open``: the latter is accepted. Members' own nodes are not looked at: they go with their processes.
    """
    paths = ZnodePaths(root)
    top = [root, *(f"{root}/{name}" for name in guarded.children(root, timeout_ms=TIMEOUT_MS))]
    holders = {path: holder for path in top if (holder := _holder(guarded, path)) is not None}
    theirs = [path for path, holder in holders.items() if holder is Holder.SOMEBODY]
    if theirs and guarded.user is None:
        raise CoordinatorRefused(
            f"{theirs[0]} is protected: give zookeeper_credentials_file, with the user and password of the installation"
        )
    if theirs:
        raise CoordinatorRefused(
            f"{theirs[0]} is not for user {guarded.user} with this password to change: user or password are wrong, or "
            "it is another installation's"
        )
    unprotected = [path for path, holder in holders.items() if holder is Holder.ANYBODY]
    if unprotected and guarded.user is not None and not may_be_open:
        raise CoordinatorRefused(
            f"anybody may change {', '.join(unprotected)}: run `pythia tso protect --root {paths.root}` once all "
            "processes have credentials; until then start them with --insecure-zookeeper-unprotected"
        )


def protect(guarded: Guarded, root: str) -> int:
    """Protect every node of an installation; how many were not before. Harmless to repeat, and while it is running.

    Refused while a process without credentials takes part: it could not renew its lease any more. Raises
    ``CoordinatorRefused``, ``CoordinatorUnavailable``.
    """
    if guarded.user is None:
        raise CoordinatorRefused("protecting needs zookeeper_credentials_file: whom to protect the znodes for")
    members = f"{ZnodePaths(root).members}/"
    if guarded.grants(root, timeout_ms=TIMEOUT_MS) is None:
        raise CoordinatorRefused(f"there is no installation at {root}: look at --root; new nodes are protected at once")
    changed = 0
    for _ in range(ROUNDS_MAX):  # what was made while we went through is found by the next round
        holders = {path: holder for path in _below(guarded, root) if (holder := _holder(guarded, path)) is not None}
        unprotected = [path for path, holder in holders.items() if holder is not Holder.OURS]
        running = [path.removeprefix(members) for path in unprotected if path.startswith(members)]
        if running:
            raise CoordinatorRefused(
                f"these processes run without credentials, and could not go on: {', '.join(running)}. Start them anew "
                "with zookeeper_credentials_file and --insecure-zookeeper-unprotected, one at a time, and repeat this"
            )
        if not unprotected:
            return changed
        for path in unprotected:
            guarded.protect(path, timeout_ms=TIMEOUT_MS)
        changed += len(unprotected)
    raise CoordinatorRefused(f"after {ROUNDS_MAX} rounds there are still new nodes below {root} that are not protected")


def _holder(guarded: Guarded, path: str) -> Holder | None:
    grants = guarded.grants(path, timeout_ms=TIMEOUT_MS)
    return None if grants is None else judge(grants, guarded.user)


def _below(guarded: Guarded, root: str) -> Iterator[str]:
    """The root, and every node below it, parents first."""
    waiting, found = [root], 0
    while waiting:
        path = waiting.pop()
        found += 1
        if found > NODES_MAX:
            raise CoordinatorRefused(f"there are more than {NODES_MAX} nodes below {root}: is it the right root?")
        yield path
        waiting += [f"{path}/{name}" for name in guarded.children(path, timeout_ms=TIMEOUT_MS)]
