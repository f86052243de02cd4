"""A real oracle with tokens and TLS, on real ZooKeeper and HBase: its doors, and where its secrets do not appear."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from access.credentials import VARIABLES
from access.roles import AccessRole
from access.server_files import ServerFiles
from access.tls import client_context
from client import AccessDenied, ClientSettings, TransactionManager
from client.checkup.commands import check
from tests.certificates import Authority
from tests.conftest import Services
from tests.integration.oracle_processes import OracleProcess
from tests.tokens import Keyring, one_of_each

pytestmark = pytest.mark.integration

WAIT_S = 60.0


@dataclass
class Guarded:
    """A running oracle, its REST, and the keys to both."""

    process: subprocess.Popen[str]
    keyring: Keyring
    authority: Authority
    client_files: ServerFiles
    settings: ClientSettings
    rest: str
    log: Path

    def client(self, token: str | None) -> ClientSettings:
        shown = self.keyring.file_of(token) if token is not None else ""
        return ClientSettings(
            self.settings.zookeeper,
            self.settings.thrift,
            root=self.settings.root,
            token_file=shown,
            tls_authority_file=self.authority.certificate,
            tls_certificate_file=self.client_files.certificate,
            tls_key_file=self.client_files.key,
        )

    def http(self, token: str | None) -> httpx.Client:
        context = client_context(self.authority.certificate, self.client_files.certificate, self.client_files.key)
        headers = {} if token is None else {"Authorization": f"Bearer {self.keyring.secrets[token]}"}
        return httpx.Client(base_url=f"https://{self.rest}", verify=context, headers=headers, timeout=WAIT_S)

    def pythia(self, *arguments: str, token: str | None) -> subprocess.CompletedProcess[str]:
        settings = self.client(token)
        return subprocess.run(
            [sys.executable, "-m", "tso", *arguments],
            env=os.environ
            | {
                "PYTHIA_ZOOKEEPER": settings.zookeeper,
                "PYTHIA_ROOT": settings.root,
                "PYTHIA_TOKEN_FILE": settings.token_file,
                "PYTHIA_CLIENT_TLS_AUTHORITY_FILE": settings.tls_authority_file,
                "PYTHIA_CLIENT_TLS_CERTIFICATE_FILE": settings.tls_certificate_file,
                "PYTHIA_CLIENT_TLS_KEY_FILE": settings.tls_key_file,
            },
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )


@pytest.fixture(scope="module")
def guarded(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    authority, keyring = Authority(folder / "authority"), one_of_each(folder)
    keyring.add("rest", AccessRole.TRANSACT, AccessRole.OPERATE)
    files, client_files = authority.issue("oracle"), authority.issue("client")
    settings = ClientSettings(services.zookeeper, services.thrift, root=f"/pythia-guarded-{uuid.uuid4().hex[:8]}")
    options = [
        "--rest-listen", "127.0.0.1:0", "--tokens-file", str(keyring.path),
        "--rest-token-file", keyring.file_of("rest"),
        "--tls-certificate-file", files.certificate, "--tls-key-file", files.key,
        "--tls-client-authority-file", authority.certificate, "--rest-tls-authority-file", authority.certificate,
        "--log-level", "debug",
    ]  # fmt: skip
    log = folder / "log"
    with log.open("w") as errors:
        serving = OracleProcess(settings, *options, name="a", errors=errors)
    try:
        rest = serving.expect("REST on (.*)")
        serving.until_standby()
        serving.until_primary()
        yield Guarded(serving.process, keyring, authority, client_files, settings, rest, log)
    finally:
        serving.end()


def test_a_transaction_goes_through_with_token_and_certificate(guarded: Guarded) -> None:
    table = f"guarded_{uuid.uuid4().hex[:8]}"
    with TransactionManager.connect(guarded.client("transact")) as manager:
        manager.create_table(table, ["d"])
        with manager.transaction() as transaction:
            transaction.put(table, b"alice", {b"d:balance": b"70"})
        assert manager.snapshot().get(table, b"alice") == {b"d:balance": b"70"}
        with guarded.http("transact") as rest:
            id = until_begun(rest)
            row = f"/v1/transactions/{id}/tables/{table}/rows/alice"
            assert rest.get(row).json()["values"] == {"d:balance": "70"}
            assert rest.put(row, json={"values": {"d:balance": "40"}}).status_code == 200
            assert rest.post(f"/v1/transactions/{id}/commit").json()["outcome"] == "committed"
        assert manager.snapshot().get(table, b"alice") == {b"d:balance": b"40"}
        manager.drop_table(table)


def test_a_check_says_what_is_shown_and_what_that_may_not(guarded: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = guarded.client("transact")
    for name in ("token_file", "tls_authority_file", "tls_certificate_file", "tls_key_file"):
        monkeypatch.setenv(VARIABLES[name], getattr(settings, name))
    place = ["--zookeeper", settings.zookeeper, "--thrift", settings.thrift, "--root", settings.root, "--json"]

    def oracle() -> tuple[str, str]:
        findings = json.loads(CliRunner().invoke(check, place).stdout)["findings"]
        return next((each["state"], each["words"]) for each in findings if each["subject"] == "oracle")

    assert oracle() == ("fine", "a transaction begins and ends")
    monkeypatch.setenv("PYTHIA_TOKEN_FILE", guarded.keyring.file_of("read"))
    state, words = oracle()
    assert state == "failed"
    assert "role" in words
    monkeypatch.delenv(VARIABLES["tls_authority_file"])
    assert "tls_authority_file" in oracle()[1]


def until_begun(rest: httpx.Client) -> str:
    for _ in range(int(WAIT_S / 0.1)):
        answer = rest.post("/v1/transactions")
        if answer.status_code == 201:
            return str(answer.json()["id"])
        threading.Event().wait(0.1)  # it has not seen yet who is primary
    raise AssertionError(answer.text)


@pytest.mark.parametrize(("token", "words"), [(None, "a token is asked for"), ("read", "asks for the role transact")])
def test_without_the_role_nothing_is_begun_and_it_is_said_at_once(
    guarded: Guarded, token: str | None, words: str
) -> None:
    with TransactionManager.connect(guarded.client(token)) as manager, pytest.raises(AccessDenied, match=words):
        manager.transaction()
    with guarded.http(token) as rest:
        assert rest.post("/v1/transactions").status_code == (401 if token is None else 403)
        assert rest.get("/v1/health/live").status_code == 200


def test_operators_commands_show_their_token(guarded: Guarded) -> None:
    seen = guarded.pythia("status", "--json", token="read")
    assert seen.returncode == 0, seen.stderr
    assert '"role": "primary"' in seen.stdout
    refused = guarded.pythia("status", token=None)
    assert refused.returncode == 3
    assert "a token is asked for" in refused.stderr
    assert guarded.pythia("metrics", token="read").returncode == 0


def test_secrets_appear_nowhere(guarded: Guarded) -> None:
    secrets = list(guarded.keyring.secrets.values())
    with guarded.http("read") as rest:
        shown = rest.get("/v1/status").text
        rest.headers["Authorization"] = "Bearer pythia_tried"
        shown += rest.get("/v1/status").text
    processes = [guarded.process.pid, *children_of(guarded.process.pid)]
    assert len(processes) >= 2, "REST's process is missing"
    for process in processes:
        for what in ("cmdline", "environ"):
            shown += Path(f"/proc/{process}/{what}").read_bytes().decode(errors="replace")
    shown += guarded.log.read_text()
    shown += guarded.pythia("status", token="operate").stdout
    for secret in secrets:
        assert secret not in shown


def test_a_token_that_is_added_opens_without_a_restart(guarded: Guarded) -> None:
    guarded.keyring.add("late", AccessRole.READ)
    with guarded.http("late") as rest:
        for _ in range(int(WAIT_S / 0.1)):
            if rest.get("/v1/status").status_code == 200:
                break
            threading.Event().wait(0.1)
        else:
            raise AssertionError("the new token opens nothing")


def children_of(process: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            parent = re.search(r"^PPid:\s+(\d+)", status.read_text(), re.MULTILINE)
        except OSError:
            continue
        if parent is not None and int(parent[1]) == process:
            found.append(int(status.parent.name))
    return found
