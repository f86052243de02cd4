"""The file of tokens on disk: read again when it changes, kept where it breaks, written whole; and its commands."""

from __future__ import annotations

import errno
import logging
import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from access.changes import LOOK_MS
from access.commands import token
from access.tokens import BadTokens, Tokens, hash_of
from access.watching import TokensFile, read_tokens
from tests.tokens import one_of_each

LATER_S = LOOK_MS / 1000


def test_a_changed_file_is_in_force_without_a_restart(tmp_path: Path) -> None:
    keyring = one_of_each(tmp_path)
    file = TokensFile(str(keyring.path), 0.0)
    keyring.add("new", *())
    secret = keyring.secrets["new"]
    keyring.path.write_text(keyring.path.read_text().replace("roles = []", 'roles = ["read"]'))
    assert "new" not in file.refresh(LATER_S / 2).by_name, "the file is looked at all the time"
    assert file.refresh(LATER_S).find(secret).name == "new"


def test_a_broken_file_leaves_the_old_tokens_in_force_and_is_told_of_loudly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keyring = one_of_each(tmp_path)
    file = TokensFile(str(keyring.path), 0.0)
    good = keyring.path.read_text()
    keyring.path.write_text(good + '[tokens.x]\nroles = ["all"]\n')
    with caplog.at_level(logging.ERROR):
        for look in range(1, 4):
            assert file.refresh(look * LATER_S).find(keyring.secrets["read"]).name == "read"
    told = caplog.messages
    assert sum("no role 'all'" in line for line in told) == 1, "a mistake is told of once"
    assert any("sha256" in line for line in told)
    keyring.path.unlink()
    assert file.refresh(5 * LATER_S).find(keyring.secrets["read"]).name == "read"
    keyring.path.write_text(good.replace("tokens.read", "tokens.reader"))
    assert file.refresh(6 * LATER_S).find(keyring.secrets["read"]).name == "reader"


def test_a_file_that_could_not_be_read_for_a_while_is_read_again_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    keyring = one_of_each(tmp_path)
    file = TokensFile(str(keyring.path), 0.0)
    keyring.path.write_text(keyring.path.read_text().replace("tokens.read", "tokens.reader"))

    def without_rights(path: str) -> Tokens:
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
        patch.setattr("access.watching.read_tokens", without_rights)
        for look in range(1, 4):
            assert "read" in file.refresh(look * LATER_S).by_name
    assert sum("Permission denied" in message for message in caplog.messages) == 1, "it is told of once"
    assert "reader" in file.refresh(5 * LATER_S).by_name, "rights may come back without a change of the file"


@pytest.mark.parametrize("end", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
def test_an_end_that_no_clock_shows_is_a_mistake(tmp_path: Path, end: str) -> None:
    keyring = one_of_each(tmp_path)
    keyring.path.write_text(f"{keyring.path.read_text()}expires = {end}\n")
    with pytest.raises(BadTokens, match="expires is in a year"):
        read_tokens(str(keyring.path))


def test_a_file_that_others_may_write_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    keyring = one_of_each(tmp_path)
    os.chmod(keyring.path, 0o666)
    TokensFile(str(keyring.path), 0.0)
    assert "chmod 600" in caplog.text


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"# " + bytes(2**20)])
def test_what_is_no_text_or_too_large_is_refused(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "f").write_bytes(raw)
    with pytest.raises(BadTokens):
        read_tokens(str(tmp_path / "f"))


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(token, arguments)
    return result.exit_code, result.stdout, result.stderr


def test_a_token_is_made_into_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    make = ("create", "--name", "etl", "--role", "transact", "--add-to", str(path))
    code, secret, told = run(*make, "--expires", "2037-01-31", "--connections-max", "9")
    assert (code, told) == (0, "")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert secret.strip() not in path.read_text()
    assert read_tokens(str(path)).find(secret.strip()).name == "etl"
    assert run("create", "--name", "watch", "--role", "read", "--add-to", str(path))[0] == 0
    code, listed, _ = run("list", str(path))
    assert listed == "etl  read,transact  until 2037-01-31T00:00:00Z  connections_max=9\nwatch  read\n"
    assert run("check", str(path))[0] == 0
    before = path.read_text()
    code, printed, told = run(*make)
    assert (code, printed) == (1, ""), "a secret was printed that opens nothing"
    assert "tokens" in told
    assert path.read_text() == before
    assert [each.name for each in tmp_path.iterdir()] == ["tokens.toml"], "something is left behind"


def test_a_file_that_begins_with_a_mark_is_read_and_added_to(tmp_path: Path) -> None:
    keyring = one_of_each(tmp_path)
    names = set(read_tokens(str(keyring.path)).by_name)
    keyring.path.write_bytes(b"\xef\xbb\xbf" + keyring.path.read_bytes().replace(b"\n", b"\r\n"))
    assert set(read_tokens(str(keyring.path)).by_name) == names
    assert run("create", "--name", "more", "--role", "read", "--add-to", str(keyring.path))[0] == 0
    assert set(read_tokens(str(keyring.path)).by_name) == {*names, "more"}


@pytest.mark.parametrize("name", ["a b", "x.y", "", "a" * 65])
def test_a_name_that_cannot_be_is_refused_as_what_it_is(name: str) -> None:
    code, printed, told = run("create", "--name", name, "--role", "read")
    assert (code, printed) == (2, "")
    assert "'--name': a name has 1 to 64 letters, digits, '_' and '-', not" in told


def test_without_a_file_the_lines_for_it_are_printed_beside_the_secret() -> None:
    code, secret, told = run("create", "--name", "a", "--role", "read", "--role", "operate")
    assert code == 0
    assert hash_of(secret.strip()).hex() in told
    assert secret.strip() not in told
    assert 'roles = ["read", "operate"]' in told


def test_a_disk_that_is_full_is_told_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("access.commands.add_to", fail)
    code, printed, told = run("create", "--name", "a", "--role", "read", "--add-to", str(tmp_path / "f"))
    assert (code, printed) == (1, "")
    assert told == f"Error: {tmp_path / 'f'}: No space left on device\n"


def test_every_mistake_of_a_file_is_listed(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("[tokens.a]\n[tokens.b]\nroles = []\n")
    code, _, told = run("check", str(tmp_path / "f"))
    assert code == 1
    assert told.startswith("Error: ")
    assert told.count("token 'a'") == 2
    assert told.count("token 'b'") == 2
    assert run("check", str(tmp_path / "none"))[0] == 1
