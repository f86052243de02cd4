"""Who may change an installation's znodes: what they grant, whether that will do, and having it granted to one alone.

With credentials, or by Kerberos, every node is made so that its maker may do everything and everybody else may read:
clients only read. ZooKeeper never refuses a password as such (another password is another identity), so that a wrong
one shows here, before the process takes part; and nodes that anybody may write are refused, too. Whose a node is
ZooKeeper is asked: by what name it knows somebody is its administrator's to say, and digests are not shown. ``judge``
is pure. Invariant: protecting changes what is granted and nothing else; versions, and so every compare-and-set, stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

from access.services import KERBEROS
from lease.errors import CoordinatorRefused
from lease.paths import ZnodePaths

NODES_MAX: Final = 10_000
ROUNDS_MAX: Final = 10
TIMEOUT_MS: Final = 5000
_WORLD: Final = "world"


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


class Known(NamedTuple):
    """As whom a session is known, and what may be wrong where that is nobody whom a node grants anything."""

    words: str
    wrong: str


class Guarded(Protocol):
    """What protecting asks of ZooKeeper. Each call raises ``CoordinatorUnavailable`` or ``CoordinatorRefused``."""

    @property
    def known(self) -> Known | None:
        """As whom its session is known; ``None``: as nobody."""

    def children(self, path: str, *, timeout_ms: float) -> list[str]:
        """See ``Coordinator.children``."""

    def grants(self, path: str, *, timeout_ms: float) -> Sequence[Grant] | None:
        """What a node grants; ``None``: there is no such node."""

    def may_grant(self, path: str, *, timeout_ms: float) -> bool:
        """Whether this session, which is known, may say what a node grants; not where there is no such node."""

    def protect(self, path: str, *, timeout_ms: float) -> None:
        """Have a node grant everything to this session's identity, and reading to everybody; harmless where gone."""


def judge(grants: Iterable[Grant], may_grant: bool) -> Holder:
    """Whose a node with these grants is, to a session that may say what it grants, or may not."""
    somebody = [grant for grant in grants if grant.scheme != _WORLD or grant.change]
    if any(grant.scheme == _WORLD for grant in somebody):
        return Holder.ANYBODY
    return Holder.OURS if may_grant and any(grant.everything for grant in somebody) else Holder.SOMEBODY


def require_protection(guarded: Guarded, root: str, *, may_be_open: bool = False) -> None:
    """Raise ``CoordinatorRefused`` where this session could not take part, or where anybody could change the nodes.

    ``may_be_open``: the latter is accepted. Members' own nodes are not looked at: they go with their processes.
    """
    paths = ZnodePaths(root)
    top = [root, *(f"{root}/{name}" for name in guarded.children(root, timeout_ms=TIMEOUT_MS))]
    holders = {path: holder for path in top if (holder := _holder(guarded, path)) is not None}
    theirs = [path for path, holder in holders.items() if holder is Holder.SOMEBODY]
    known = guarded.known
    if theirs and known is None:
        raise CoordinatorRefused(
            f"{theirs[0]} is protected: give zookeeper_credentials_file, with the user and password of the "
            f"installation, or ZooKeeper's address with {KERBEROS} before it where its processes are known by Kerberos"
        )
    if theirs and known is not None:
        raise CoordinatorRefused(
            f"{theirs[0]} is not for {known.words} to change, but for {_owners(guarded, theirs[0])}: {known.wrong}, or "
            "it is another installation's"
        )
    unprotected = [path for path, holder in holders.items() if holder is Holder.ANYBODY]
    if unprotected and known is not None and not may_be_open:
        raise CoordinatorRefused(
            f"anybody may change {', '.join(unprotected)}: run `pythia tso protect --root {paths.root}` once all "
            "processes have credentials; until then start them with --insecure-zookeeper-unprotected"
        )


def protect(guarded: Guarded, root: str) -> int:
    """Protect every node of an installation; how many were not before. Harmless to repeat, and while it is running.

    Refused while a process takes part that is known otherwise, or not at all: it could not renew its lease any more.
    Raises ``CoordinatorRefused``, ``CoordinatorUnavailable``.
    """
    if guarded.known is None:
        raise CoordinatorRefused(
            f"protecting needs zookeeper_credentials_file, or ZooKeeper's address with {KERBEROS} before it: whom to "
            "protect the znodes for"
        )
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
                f"these processes are not known to ZooKeeper as this session is, {guarded.known.words}, and could not "
                f"go on: {', '.join(running)}. Start them anew with the same credentials or principal and "
                "--insecure-zookeeper-unprotected, one at a time, and repeat this"
            )
        if not unprotected:
            return changed
        for path in unprotected:
            guarded.protect(path, timeout_ms=TIMEOUT_MS)
        changed += len(unprotected)
    raise CoordinatorRefused(f"after {ROUNDS_MAX} rounds there are still new nodes below {root} that are not protected")


def _holder(guarded: Guarded, path: str) -> Holder | None:
    grants = guarded.grants(path, timeout_ms=TIMEOUT_MS)
    if grants is None:
        return None
    return judge(grants, guarded.known is not None and guarded.may_grant(path, timeout_ms=TIMEOUT_MS))


def _owners(guarded: Guarded, path: str) -> str:
    """To whom a node grants everything, in ZooKeeper's words, without digests."""
    grants = guarded.grants(path, timeout_ms=TIMEOUT_MS) or ()
    granted = [(scheme, identity) for scheme, identity, _, everything in grants if everything]
    names = [f"{scheme}:{name.partition(':')[0] if scheme == 'digest' else name}" for scheme, name in granted]
    return ", ".join(names) or "nobody"


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
