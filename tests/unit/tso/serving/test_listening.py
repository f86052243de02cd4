"""An address that cannot be listened on is named, with the reason, whoever wanted it."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from tso.commands import serve as commands
from tso.rest_process import address_of, listen
from tso.serving.listening import cannot_listen, written


@pytest.fixture
def taken() -> Iterator[str]:
    """An address on which somebody listens."""
    with listen("127.0.0.1", 0) as listening:
        yield address_of(listening)


def test_an_oracle_names_an_address_that_is_taken(taken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "configure_logs", lambda *_: None)
    result = CliRunner().invoke(commands.tso, ["volatile", "--listen", taken])
    assert result.exit_code == 1
    assert f"error: nobody can listen on {taken}: address already in use\n" in result.output


def test_so_does_rest(taken: str) -> None:
    host, _, port = taken.rpartition(":")
    with pytest.raises(OSError, match=f"^nobody can listen on {taken}: address already in use$"):
        listen(host, int(port))


def test_a_host_that_nobody_knows_is_told_in_the_resolvers_words() -> None:
    error = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    assert str(cannot_listen("oracle-x", 1, error)) == "nobody can listen on oracle-x:1: Name or service not known"
    assert "permission denied" in str(cannot_listen("::1", 80, PermissionError(errno.EACCES, "no")))


def test_hosts_of_ipv6_have_brackets() -> None:
    assert [written("::1", 5480), written("127.0.0.1", 5480)] == ["[::1]:5480", "127.0.0.1:5480"]
