"""Znodes of the real ZooKeeper that nobody else may change: not without credentials, not with a wrong password."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from kazoo.client import KazooClient
from kazoo.exceptions import InvalidACLError, NoAuthError
from kazoo.security import OPEN_ACL_UNSAFE, make_acl, make_digest_acl

from lease import (
    Candidate,
    CoordinatorRefused,
    LeaseSettings,
    PrimaryFinder,
    Tenure,
    ZnodePaths,
    members,
)
from lease.coordinator import Applied, Create
from lease.credentials import CREDENTIALS_VARIABLE, ZooKeeperCredentials
from lease.memory import MemoryFloor
from lease.protection import require_protection
from lease.raising import attendance, complete, require_level
from lease.zookeeper import ZooKeeperCoordinator
from tests.conftest import Services
from tests.integration.candidates import real_candidate
from tso.commands.serve import tso
from tso.commands.zookeeper_session import writing_session

pytestmark = pytest.mark.integration

LONG = LeaseSettings(lease_ms=600_000, request_timeout_ms=5000, ceiling_ahead_ms=1_200_000)
OURS = ZooKeeperCredentials("pythia", "the right one")
WRONG = ZooKeeperCredentials("pythia", "the wrong one")
TIMEOUT_MS = 5000
LIMIT_S = 60.0


class Site:
    """Sessions and candidates of one test, under a root of its own."""

    def __init__(self, zookeeper: str) -> None:
        self.zookeeper = zookeeper
        self.paths = ZnodePaths(f"/test-{uuid.uuid4().hex}")
        self.root = self.paths.root
        self.closing = contextlib.ExitStack()

    def connect(self, credentials: ZooKeeperCredentials | None) -> ZooKeeperCoordinator:
        return self.closing.enter_context(ZooKeeperCoordinator(self.zookeeper, credentials))

    def attacker(self, credentials: ZooKeeperCredentials | None) -> KazooClient:
        """A session of somebody who uses another program."""
        client = KazooClient(self.zookeeper, auth_data=[("digest", credentials.digest)] if credentials else None)
        client.start(timeout=LIMIT_S)
        self.closing.callback(client.close)
        self.closing.callback(client.stop)
        return client

    def candidate(self, holder: str, coordinator: ZooKeeperCoordinator) -> Candidate:
        return real_candidate(holder, coordinator, LONG, self.root, MemoryFloor())

    def serve(self, credentials: ZooKeeperCredentials | None) -> tuple[Candidate, Tenure]:
        candidate = self.candidate("a", self.connect(credentials))
        candidate.join("standby")
        tenure = candidate.attempt()
        assert isinstance(tenure, Tenure)
        candidate.join("primary")
        return candidate, tenure


@pytest.fixture
def site(services: Services) -> Iterator[Site]:
    site = Site(services.zookeeper)
    with site.closing:
        yield site


def below(client: KazooClient, path: str) -> list[str]:
    return [path, *(node for name in client.get_children(path) for node in below(client, f"{path}/{name}"))]


@pytest.mark.parametrize("credentials", [None, WRONG])
def test_an_attacker_reads_and_changes_nothing(site: Site, credentials: ZooKeeperCredentials | None) -> None:
    candidate, tenure = site.serve(OURS)
    owner = site.connect(OURS)
    assert owner.commit([Create(f"{site.root}/history", b"1")], timeout_ms=TIMEOUT_MS) == Applied()
    attacker = site.attacker(credentials)
    nodes = below(attacker, site.root)
    assert len(nodes) == 9, "root, lease, epoch, level, members, a member, tenures, a tenure and a history"
    before = {node: attacker.get(node) for node in nodes}
    for node in nodes:
        writes: list[Callable[[], object]] = [
            lambda node=node: attacker.set(node, b"{}"),  # type: ignore[misc]
            lambda node=node: attacker.create(f"{node}/mine", b""),  # type: ignore[misc]
            lambda node=node: attacker.create(f"{node}/mine", b"", ephemeral=True),  # type: ignore[misc]
            lambda node=node: attacker.set_acls(node, OPEN_ACL_UNSAFE),  # type: ignore[misc]
        ]
        if node != site.root:  # who may delete it is said by its parent, which is the operator's
            writes.append(lambda node=node: attacker.delete(node))  # type: ignore[misc]
        for write in writes:
            with pytest.raises((NoAuthError, InvalidACLError)):
                write()
    assert {node: attacker.get(node) for node in nodes} == before
    assert tenure.renew()
    reader = site.connect(credentials)
    assert PrimaryFinder(reader, site.root).current() == tenure.record
    assert [member.role for member in members(reader, site.root)] == ["primary"]
    with pytest.raises(
        CoordinatorRefused, match="give zookeeper_cred" if credentials is None else "password are wrong"
    ):
        require_protection(reader, site.root)
    del candidate


def test_a_root_that_an_administrator_made_is_used_where_nobody_else_may_make_nodes(site: Site) -> None:
    """ZooKeeper refuses to have a node made below what grants nothing, whether that node is there or not."""
    administrator = site.attacker(ZooKeeperCredentials("administrator", "of all"))
    all_to_him = make_digest_acl("administrator", "of all", all=True)
    top = f"/test-{uuid.uuid4().hex}"
    administrator.create(top, b"", acl=[all_to_him])
    administrator.create(f"{top}/team", b"", acl=[all_to_him])
    site.paths = ZnodePaths(f"{top}/team/pythia")
    site.root = site.paths.root
    refused = site.candidate("a", site.connect(OURS))
    with pytest.raises(CoordinatorRefused, match=f"refuses to have {site.root} written"):
        refused.attempt()
    ours = [make_digest_acl(OURS.user, OURS.password, all=True), make_acl("world", "anyone", read=True)]
    administrator.create(site.root, b"", acl=[all_to_him, *ours])
    require_protection(site.connect(OURS), site.root)
    _, tenure = site.serve(OURS)
    assert tenure.renew()
    assert [member.role for member in members(site.connect(None), site.root)] == ["primary"]


def test_what_the_owner_does_is_as_without_protection(site: Site) -> None:
    _, tenure = site.serve(OURS)
    operator = site.connect(OURS)
    require_protection(operator, site.root)
    seen = attendance(operator, site.root)
    assert require_level(operator, site.root, seen, 1)
    assert tenure.renew()
    assert complete(operator, site.root, attendance(operator, site.root), 1)
    assert tenure.renew()
    tenure.release()
    standby = site.candidate("b", site.connect(OURS))
    standby.join("standby")
    assert isinstance(standby.attempt(), Tenure)


def protect(site: Site, file: Path) -> tuple[int, str]:
    where = ["--zookeeper", site.zookeeper, "--root", site.root, "--zookeeper-credentials-file", str(file)]
    result = CliRunner().invoke(tso, ["protect", *where])
    return result.exit_code, result.output


def test_an_installation_that_is_running_gets_its_protection(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text("pythia:the right one\n")
    open_session = site.connect(None)
    first = site.candidate("a", open_session)
    first.join("standby")
    tenure = first.attempt()
    assert isinstance(tenure, Tenure)
    with pytest.raises(CoordinatorRefused, match="pythia tso protect"):
        require_protection(site.connect(OURS), site.root)
    code, output = protect(site, file)
    assert code == 1
    assert (
        "are not known to ZooKeeper as this session is, user pythia with this password, and could not go on: a-"
        in output
    )
    tenure.release()
    open_session.close()

    _, tenure = site.serve(OURS)  # as it does where it is told to take part although anybody may write
    code, output = protect(site, file)
    assert (code, output) == (0, f"6 znodes below {site.root} protected\n")
    assert tenure.renew(), "nothing but what the nodes grant has changed"
    assert protect(site, file) == (0, f"every znode below {site.root} was protected\n")
    require_protection(site.connect(OURS), site.root)
    file.write_text("pythia:the wrong one\n")
    assert protect(site, file)[0] == 1


def test_whoever_may_not_write_is_told_why_before_it_takes_part(site: Site, tmp_path: Path) -> None:
    site.serve(OURS)
    file = tmp_path / "credentials"
    file.write_text("pythia:the wrong one")
    for name, reason in ((str(file), "user or password are wrong"), ("", "give zookeeper_credentials_file")):
        with (
            pytest.raises(CoordinatorRefused, match=reason),
            writing_session(site.zookeeper, site.root, name, may_be_open=True),
        ):
            pass


def test_an_oracle_with_a_wrong_password_ends_at_once_and_does_not_say_it(site: Site) -> None:
    site.serve(OURS)
    options = ["--zookeeper", site.zookeeper, "--thrift", "127.0.0.1:1", "--root", site.root, "--log-level", "debug"]
    command = [sys.executable, "-m", "tso", "serve", *options, "--listen", "127.0.0.1:0"]
    environment = os.environ | {CREDENTIALS_VARIABLE: "pythia:the wrong one"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert ended.returncode == 1
    assert "user or password are wrong" in ended.stderr.splitlines()[-1]
    assert "the wrong one" not in ended.stdout + ended.stderr
