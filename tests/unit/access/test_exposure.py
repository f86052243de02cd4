"""What may be listened on beyond this machine, and with what."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from click.testing import CliRunner

from access.exposure import CLEAR_OPTION, OPEN_OPTION, exposures, incomplete, is_loopback
from tso.commands.serve import tso

NOTHING: Mapping[str, object] = {
    "tokens_file": "", "tls_certificate_file": "", "tls_key_file": "", "tls_client_authority_file": "",
    "rest_listen": "", "rest_token_file": "", "rest_tls_authority_file": "", OPEN_OPTION: False, CLEAR_OPTION: False,
}  # fmt: skip
TLS = {"tls_certificate_file": "c", "tls_key_file": "k"}


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True),
     ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("oracle", False), ("localhost.example", False)],
)  # fmt: skip
def test_what_only_this_machine_reaches(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("options", "exposed"),
    [
        ({}, "tokens_file"),
        (TLS, "tokens_file"),
        ({OPEN_OPTION: True}, None),
        ({CLEAR_OPTION: True}, "tokens_file"),
        ({"tokens_file": "t"}, "tls_certificate_file"),
        ({"tokens_file": "t", OPEN_OPTION: True}, "tls_certificate_file"),
        ({"tokens_file": "t", CLEAR_OPTION: True}, None),
        ({"tokens_file": "t", **TLS}, None),
    ],
)
@pytest.mark.parametrize("name", ["listen", "rest_listen"])
def test_nothing_is_exposed_unless_it_was_said_in_as_many_words(
    options: dict[str, object], exposed: str | None, name: str
) -> None:
    found = list(exposures({**NOTHING, **options}, {"other": "127.0.0.1", name: "10.0.0.1"}))
    assert [names for names, _ in found] == ([] if exposed is None else [(name, exposed)])
    assert all("--insecure-" in reason for _, reason in found)


def test_files_that_are_nothing_without_another_are_told_of() -> None:
    def told(**options: object) -> list[tuple[str, ...]]:
        return [names for names, _ in incomplete({**NOTHING, **options})]

    assert told() == []
    assert told(tls_certificate_file="c") == [("tls_certificate_file", "tls_key_file")]
    assert told(tls_key_file="c") == [("tls_key_file", "tls_certificate_file")]
    assert told(tls_client_authority_file="c") == [("tls_client_authority_file", "tls_certificate_file")]
    assert told(rest_listen="h:1", tokens_file="t") == [("rest_listen", "rest_token_file")]
    assert told(rest_listen="h:1", **TLS) == [("rest_listen", "rest_tls_authority_file")]


@pytest.mark.parametrize("door", [("--listen", "10.0.0.1:1"), ("--rest-listen", "10.0.0.1:1")])
def test_an_oracle_does_not_start_that_everybody_could_use(door: tuple[str, str]) -> None:
    started = CliRunner().invoke(tso, ["serve", "--zookeeper", "z:1", "--thrift", "t:1", *door])
    assert started.exit_code == 2
    assert "--insecure-listen-without-authentication" in started.output
    assert CliRunner().invoke(tso, ["volatile", "--listen", "0.0.0.0:0"]).exit_code == 2
