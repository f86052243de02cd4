"""Whose the znodes are to change, what is refused, and credentials that show themselves nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lease import CoordinatorRefused, InvalidLeaseSettings
from lease.credentials import CREDENTIALS_VARIABLE, ZooKeeperCredentials, load_credentials
from lease.protection import Grant, Holder, Known, judge, protect, require_protection

READ_BY_ALL = Grant("world", "anyone", change=False, everything=False)
OPEN = Grant("world", "anyone", change=True, everything=True)
OURS = Grant("digest", "pythia:abc", change=True, everything=True)
ANOTHERS = Grant("sasl", "another@REALM", change=True, everything=True)
ROOT = "/pythia"
SECRET = "never-to-be-seen"


@pytest.mark.parametrize(
    ("grants", "may_grant", "holder"),
    [
        ([OURS, READ_BY_ALL], True, Holder.OURS),
        ([OURS, READ_BY_ALL], False, Holder.SOMEBODY),
        ([OPEN], True, Holder.ANYBODY),
        ([OURS, OPEN], True, Holder.ANYBODY),
        ([OPEN, OURS], False, Holder.ANYBODY),
        ([Grant("world", "anyone", change=True, everything=False), OURS], True, Holder.ANYBODY),
        ([Grant("digest", "pythia:abc", change=True, everything=False)], True, Holder.SOMEBODY),
        ([], True, Holder.SOMEBODY),
    ],
)
def test_whose_a_node_is(grants: Sequence[Grant], may_grant: bool, holder: Holder) -> None:
    assert judge(grants, may_grant) is holder


class Tree:
    """Nodes and what they grant, to the session of one user, whom ZooKeeper knows as it likes."""

    def __init__(self, user: str | None, nodes: dict[str, list[Grant]]) -> None:
        self.known = Known(f"user {user}", "user or password are wrong") if user else None
        self.nodes = nodes
        self.appearing: dict[str, list[Grant]] = {}

    def children(self, path: str, *, timeout_ms: float) -> list[str]:
        below = [node.removeprefix(f"{path}/") for node in self.nodes if node.startswith(f"{path}/")]
        return sorted(name for name in below if "/" not in name)

    def grants(self, path: str, *, timeout_ms: float) -> list[Grant] | None:
        return self.nodes.get(path)

    def may_grant(self, path: str, *, timeout_ms: float) -> bool:
        assert self.known is not None
        return any(grant in (OURS, OPEN) for grant in self.nodes.get(path, []))

    def protect(self, path: str, *, timeout_ms: float) -> None:
        self.nodes[path] = [OURS, READ_BY_ALL]
        self.nodes |= self.appearing
        self.appearing = {}


def tree(grant: Grant, user: str | None = "pythia", *more: str) -> Tree:
    names = (ROOT, f"{ROOT}/lease", f"{ROOT}/members", *more)
    return Tree(user, {name: [grant, READ_BY_ALL] for name in names})


def test_what_is_ours_is_accepted_and_what_is_not_there_yet() -> None:
    require_protection(tree(OURS), ROOT)
    require_protection(Tree("pythia", {}), ROOT)
    require_protection(Tree(None, {}), ROOT)


def test_what_anybody_may_change_is_refused_with_the_command_unless_it_is_wanted() -> None:
    with pytest.raises(CoordinatorRefused, match="pythia tso protect --root /pythia"):
        require_protection(tree(OPEN), ROOT)
    require_protection(tree(OPEN), ROOT, may_be_open=True)
    require_protection(tree(OPEN, user=None), ROOT)
    one_open = tree(OURS)
    one_open.nodes[f"{ROOT}/lease"] = [OPEN]
    with pytest.raises(CoordinatorRefused, match="anybody may change /pythia/lease:"):
        require_protection(one_open, ROOT)


@pytest.mark.parametrize("may_be_open", [False, True])
def test_a_wrong_password_and_none_at_all_are_told_apart(may_be_open: bool) -> None:
    words = r"not for user pythia to change, but for sasl:another@REALM: user or password are wrong, or it is another"
    with pytest.raises(CoordinatorRefused, match=words):
        require_protection(tree(ANOTHERS), ROOT, may_be_open=may_be_open)
    with pytest.raises(
        CoordinatorRefused, match=r"give zookeeper_credentials_file, .* or ZooKeeper's address with kerb"
    ):
        require_protection(tree(OURS, user=None), ROOT, may_be_open=may_be_open)


def test_no_digest_is_told() -> None:
    nodes = tree(Grant("digest", "other:abc", change=True, everything=True))
    with pytest.raises(CoordinatorRefused, match="but for digest:other:"):
        require_protection(nodes, ROOT)


def test_every_node_is_protected_also_those_that_appear_meanwhile() -> None:
    nodes = tree(OPEN)
    nodes.appearing = {f"{ROOT}/history": [OPEN]}
    assert protect(nodes, ROOT) == 4
    assert protect(nodes, ROOT) == 0
    require_protection(nodes, ROOT)


def test_a_root_that_is_none_is_not_called_protected() -> None:
    with pytest.raises(CoordinatorRefused, match="look at --root"):
        protect(tree(OPEN), "/other")


def test_nothing_is_protected_from_a_process_that_has_no_credentials() -> None:
    nodes = tree(OPEN, "pythia", f"{ROOT}/members/tso-1-00ff")
    with pytest.raises(
        CoordinatorRefused, match=r"not known to ZooKeeper as this session is, user pythia, .*: tso-1-00ff\."
    ):
        protect(nodes, ROOT)
    assert nodes.nodes[ROOT] == [OPEN, READ_BY_ALL]
    nodes.nodes[f"{ROOT}/members/tso-1-00ff"] = [OURS, READ_BY_ALL]
    assert protect(nodes, ROOT) == 3
    with pytest.raises(CoordinatorRefused, match="needs zookeeper_credentials_file"):
        protect(tree(OPEN, None), ROOT)


def test_credentials_come_from_a_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text(f"pythia:{SECRET}:more\n")
    expected = ZooKeeperCredentials("pythia", f"{SECRET}:more")
    assert load_credentials(str(file), {CREDENTIALS_VARIABLE: "a:b"}) == expected
    assert load_credentials("", {CREDENTIALS_VARIABLE: f" pythia:{SECRET}:more "}) == expected
    assert load_credentials("", {}) is None


def test_credentials_are_not_shown(tmp_path: Path) -> None:
    credentials = ZooKeeperCredentials("pythia", SECRET)
    assert SECRET not in repr(credentials)
    assert SECRET not in repr(("digest", credentials.digest))
    assert credentials.digest.encode() == f"pythia:{SECRET}".encode()
    for wrong in (SECRET, f":{SECRET}", f"{SECRET}:", f"a:{SECRET}\nb", f"a:{SECRET}ä", SECRET * 100):
        file = tmp_path / "credentials"
        file.write_text(wrong)
        with pytest.raises(InvalidLeaseSettings, match="credentials") as told:
            load_credentials(str(file))
        assert SECRET not in str(told.value)
    with pytest.raises(InvalidLeaseSettings, match="No such file"):
        load_credentials(str(tmp_path / "absent"))
