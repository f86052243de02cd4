"""A ZooKeeper that speaks TLS: whom a session believes, what it shows, and what is told where the two do not agree."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from access.services import ZOOKEEPER, TlsFiles
from lease.ensemble import Ensemble, parse_ensemble
from lease.errors import CoordinatorUnavailable, InvalidLeaseSettings
from lease.zookeeper import ZooKeeperCoordinator
from tests.certificates import Authority
from tests.tls_terminator import TlsTerminator, tls_before
from tests.unit.lease.test_zookeeper_client import HalfZooKeeper, read_again

LONG_MS = 20_000
SHORT_MS = 500


@pytest.fixture
def server() -> Iterator[HalfZooKeeper]:
    with contextlib.closing(HalfZooKeeper()) as server:
        yield server


@pytest.fixture
def secured(server: HalfZooKeeper, authority: Authority) -> Iterator[TlsTerminator]:
    """Lets nobody in without a certificate."""
    files = replace(authority.issue("zookeeper"), client_authority=authority.certificate)
    with tls_before(int(server.address.rpartition(":")[2]), files) as terminator:
        yield terminator


@pytest.fixture(scope="module")
def files(authority: Authority) -> TlsFiles:
    own = authority.issue("oracle", "oracle")
    return TlsFiles(authority.certificate, own.certificate, own.key)


def read(port: int, files: TlsFiles = TlsFiles(), *, connect_timeout_ms: int = LONG_MS) -> None:  # noqa: B008
    with ZooKeeperCoordinator(f"tls://127.0.0.1:{port}", tls=files, connect_timeout_ms=connect_timeout_ms) as session:
        assert session.read("/n", timeout_ms=LONG_MS) is None


def test_a_session_goes_over_tls_and_comes_back(server: HalfZooKeeper, secured: TlsTerminator, files: TlsFiles) -> None:
    with ZooKeeperCoordinator(f"tls://127.0.0.1:{secured.port}", tls=files) as session:
        assert session.read("/n", timeout_ms=LONG_MS) is None
        secured.hang_up()
        while server.sessions < 2:
            read_again(session)
    assert secured.handshakes == server.sessions >= 2


def test_an_answer_that_came_with_the_one_before_is_not_waited_for(
    server: HalfZooKeeper, secured: TlsTerminator, files: TlsFiles
) -> None:
    """One record of TLS has both: nothing more comes by the socket until the next ping, in twenty seconds."""
    server.session_ms = 60_000
    with ZooKeeperCoordinator(f"tls://127.0.0.1:{secured.port}", tls=files, session_timeout_ms=60_000) as session:
        for _ in range(20):
            server.holds_back = 1
            assert session.read("/n", timeout_ms=5_000, synced=True) is None


def test_files_come_from_the_environment_where_nobody_names_them(
    secured: TlsTerminator, files: TlsFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, path in files.named().items():
        monkeypatch.setenv(TlsFiles.variable(ZOOKEEPER, name), path)
    read(secured.port)


def test_a_certificate_may_have_its_key_with_it(secured: TlsTerminator, files: TlsFiles, tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_text(Path(files.certificate_file).read_text() + Path(files.key_file).read_text())
    read(secured.port, TlsFiles(files.authority_file, str(both)))


def test_without_its_certificate_nobody_has_a_session(
    server: HalfZooKeeper, secured: TlsTerminator, files: TlsFiles
) -> None:
    with pytest.raises(CoordinatorUnavailable, match=r"did not answer within 500 ms: .*; last: Connection dropped"):
        read(secured.port, TlsFiles(files.authority_file), connect_timeout_ms=SHORT_MS)
    assert server.sessions == 0


def test_who_is_not_signed_by_the_authority_is_not_believed_and_it_is_said(
    server: HalfZooKeeper, secured: TlsTerminator, files: TlsFiles, tmp_path: Path
) -> None:
    other = replace(files, authority_file=Authority(tmp_path / "other").certificate)
    with pytest.raises(
        CoordinatorUnavailable, match=r"last: .*its certificate is not accepted: self-signed certificate"
    ):
        read(secured.port, other, connect_timeout_ms=SHORT_MS)
    assert server.sessions == 0


def test_a_certificate_has_to_name_the_host_or_the_name_that_is_set(
    server: HalfZooKeeper, authority: Authority, files: TlsFiles
) -> None:
    port = int(server.address.rpartition(":")[2])
    with tls_before(port, authority.issue("named", "zookeeper.example")) as terminator:
        with pytest.raises(CoordinatorUnavailable, match=r"last: .*IP address mismatch"):
            read(terminator.port, files, connect_timeout_ms=SHORT_MS)
        assert server.sessions == 0
        read(terminator.port, replace(files, server_name="zookeeper.example"))


def test_a_zookeeper_in_clear_text_is_not_spoken_to_in_clear_text(server: HalfZooKeeper, files: TlsFiles) -> None:
    hosts = f"tls://{server.address}"
    with pytest.raises(CoordinatorUnavailable, match=r"last: .*in 300 ms: where it listens in clear text"):
        ZooKeeperCoordinator(hosts, tls=files, connect_timeout_ms=2_000, session_timeout_ms=300)
    assert server.sessions == 0


def test_why_nobody_is_reached_is_told_without_tls_too() -> None:
    with pytest.raises(CoordinatorUnavailable, match=r"last: Connection dropped: .*refused"):
        ZooKeeperCoordinator("127.0.0.1:1", connect_timeout_ms=SHORT_MS)


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(TlsFiles)])
def test_files_are_refused_where_no_address_says_tls(field: str) -> None:
    words = rf"zookeeper_tls_{field} \(PYTHIA_ZOOKEEPER_TLS_{field.upper()}\) is for a ZooKeeper that speaks TLS"
    with pytest.raises(InvalidLeaseSettings, match=words):
        ZooKeeperCoordinator("127.0.0.1:1", tls=TlsFiles(**{field: "x"}))


def test_files_that_cannot_be_used_are_told_before_anybody_is_asked(files: TlsFiles) -> None:
    for wrong, words in (
        (TlsFiles("/nowhere"), r"ZooKeeper at tls://127.0.0.1:1: authority /nowhere: No such file"),
        (replace(files, certificate_file=""), "without its certificate: set PYTHIA_ZOOKEEPER_TLS_CERTIFICATE_FILE"),
    ):
        with pytest.raises(InvalidLeaseSettings, match=words):
            ZooKeeperCoordinator("tls://127.0.0.1:1", tls=wrong)


def test_an_ensemble_speaks_tls_or_does_not() -> None:
    assert parse_ensemble("a:1, b:2") == Ensemble("a:1,b:2", tls=False)
    assert parse_ensemble("tls://a:1,tls://b:2") == Ensemble("a:1,b:2", tls=True)
    for mixed in ("tls://a:1,b:2", "a:1,tls://b:2"):
        with pytest.raises(
            InvalidLeaseSettings, match="all of ZooKeeper's hosts have the same before them, tls://, kerb"
        ):
            parse_ensemble(mixed)
    for wrong in ("http://a:1", "tls://", "tls://a", "tls://tls://a:1", "TLS://a:1", "a:1/x"):
        with pytest.raises(InvalidLeaseSettings, match="ZooKeeper's hosts are host:port,host:port, or tls://host:port"):
            parse_ensemble(wrong)
