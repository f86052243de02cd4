"""What a client shows of itself: from a file or the environment, and never shown by anything else."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from click.testing import CliRunner

from access.credentials import TOKEN_VARIABLE, VARIABLES, BadCredentials, Credentials
from access.making import make_secret
from client import ClientSettings
from client.settings import CLIENT, CREDENTIALS
from configuration.commands import config

SECRET = make_secret()


def test_the_token_comes_from_its_file_anew_each_time_and_else_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text(f"{SECRET}\n")
    monkeypatch.setenv(TOKEN_VARIABLE, "of the environment")
    credentials = Credentials(str(file))
    assert credentials.token() == SECRET
    file.write_text("the next")
    with pytest.raises(BadCredentials, match="one token and nothing else"):
        credentials.token()
    file.write_text("next")
    assert credentials.token() == "next"
    assert Credentials().token() == "of the environment"
    monkeypatch.setenv(VARIABLES["token_file"], str(file))
    assert Credentials().token() == "next"
    monkeypatch.delenv(VARIABLES["token_file"])
    monkeypatch.delenv(TOKEN_VARIABLE)
    assert Credentials().token() == ""


def test_the_variables_are_those_of_the_settings() -> None:
    declared = {setting.name: setting.environment for setting in CLIENT.settings}
    assert {name: declared[name] for name in CREDENTIALS} == dict(VARIABLES)
    assert [field.name for field in dataclasses.fields(Credentials)] == list(CREDENTIALS)


@pytest.mark.parametrize("raw", [b"", b"a b", b"\xff", b"x" * 2000])
def test_a_file_that_holds_no_token_is_refused_without_repeating_it(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "token").write_bytes(raw)
    with pytest.raises(BadCredentials) as caught:
        Credentials(str(tmp_path / "token")).token()
    assert "xxx" not in str(caught.value)


def test_settings_that_travel_have_the_names_of_files_only(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(SECRET)
    settings = ClientSettings("z:1", "t:1", token_file=str(tmp_path / "token"))
    assert SECRET not in settings.to_json()
    assert SECRET not in repr(settings)


def test_what_is_in_force_is_shown_without_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text(SECRET)
    monkeypatch.setenv(TOKEN_VARIABLE, SECRET)
    monkeypatch.setenv(VARIABLES["token_file"], str(tmp_path / "token"))
    shown = CliRunner().invoke(config, ["show"]).output
    assert str(tmp_path / "token") in shown
    assert SECRET not in shown


@pytest.mark.parametrize("field", ["tls_certificate_file", "tls_key_file", "tls_server_name"])
def test_who_names_anything_of_tls_never_speaks_plain(field: str) -> None:
    assert Credentials().tls() is None
    with pytest.raises(BadCredentials, match=f"{field} is nothing without tls_authority_file"):
        Credentials(**{field: "x"}).tls()
