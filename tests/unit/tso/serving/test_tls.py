"""TLS on the frames' port: who is let in, who is told what, and certificates that change."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import shutil
import ssl
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from access import Credentials
from access.changes import LOOK_MS
from access.server_files import ServerFiles
from access.tls import BadTls, ServerTls, client_context, server_context
from client import AsyncOracleClient, ClientSettings
from client.connection.primary import SoloDirectory
from client.errors import AccessDenied, NoPrimary
from fleet import NoAnswer, ask_status
from tests.certificates import Authority
from tests.unit.tso.calling import transact
from wire import NotAllowed, NotAllowedCode, Role

if TYPE_CHECKING:
    from tests.unit.tso.conftest import House, RunHouse


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"))


@pytest.fixture(scope="module")
def server_files(authority: Authority) -> ServerFiles:
    return authority.issue("oracle")


async def begun(address: str, **settings: str | int) -> int:
    """Transactions that a client of the library could begin. Raises what it raises."""
    client = AsyncOracleClient(SoloDirectory(address), ClientSettings("", "t:1", oracle=address, **settings))  # type: ignore[arg-type]
    try:
        return (await client.begin()).transactions
    finally:
        client.close()


def test_the_library_and_the_operators_tools_speak_tls(
    run_house: RunHouse, authority: Authority, server_files: ServerFiles
) -> None:
    async def scenario(house: House) -> None:
        address = (await house.start_primary("a", tls=server_files)).server.address
        assert await begun(address, tls_authority_file=authority.certificate) == 1
        shown = Credentials(tls_authority_file=authority.certificate)
        assert (await asyncio.to_thread(ask_status, address, 5_000, shown)).role is Role.PRIMARY

    run_house(scenario)


def test_a_certificate_that_is_wrong_is_refused_at_once_with_its_reason(
    run_house: RunHouse, authority: Authority, stranger: Authority
) -> None:
    wrong = {
        "of another authority": (stranger.issue("stranger"), {}, "self-signed|unable to get|signature failure"),
        "for another name": (authority.issue("elsewhere", "elsewhere"), {}, "127.0.0.1"),
        "expired": (authority.issue("old", expired=True), {}, "expired"),
        "for its name, and another is asked for": (
            authority.issue("here"), {"tls_server_name": "there"}, "there",
        ),
    }  # fmt: skip

    async def scenario(house: House) -> None:
        for number, (files, settings, words) in enumerate(wrong.values()):
            address = (await house.start(f"p{number}", tls=files)).server.address
            with pytest.raises(AccessDenied, match=words):
                await begun(address, tls_authority_file=authority.certificate, **settings)
            shown = Credentials(tls_authority_file=authority.certificate, **settings)
            with pytest.raises(NoAnswer, match=words):
                await asyncio.to_thread(ask_status, address, 5_000, shown)

    run_house(scenario)


def test_a_name_may_be_asked_for_that_is_not_dialled(run_house: RunHouse, authority: Authority) -> None:
    files = authority.issue("named", "oracle.example")

    async def scenario(house: House) -> None:
        address = (await house.start_primary("a", tls=files)).server.address
        settings = {"tls_authority_file": authority.certificate, "tls_server_name": "oracle.example"}
        assert await begun(address, **settings) == 1

    run_house(scenario)


def test_a_client_has_to_show_a_certificate_where_one_is_asked_for(
    run_house: RunHouse, authority: Authority, stranger: Authority, server_files: ServerFiles
) -> None:
    mutual = replace(server_files, client_authority=authority.certificate)
    known, unknown = authority.issue("client"), stranger.issue("client")

    async def scenario(house: House) -> None:
        address = (await house.start_primary("a", tls=mutual)).server.address
        trusting = {"tls_authority_file": authority.certificate}
        shown = {"tls_certificate_file": known.certificate, "tls_key_file": known.key}
        assert await begun(address, **trusting, **shown) == 1
        status = await asyncio.to_thread(ask_status, address, 5_000, Credentials(**trusting, **shown))
        assert status.role is Role.PRIMARY
        with pytest.raises(AccessDenied, match="a client's certificate is asked for"):
            await begun(address, **trusting)
        with pytest.raises(NoAnswer, match="a client's certificate is asked for"):
            await asyncio.to_thread(ask_status, address, 5_000, Credentials(**trusting))
        shown = {"tls_certificate_file": unknown.certificate, "tls_key_file": unknown.key}
        with pytest.raises((AccessDenied, NoPrimary), match="does it accept the certificate"):
            await begun(address, **trusting, **shown, deadline_ms=300)

    run_house(scenario)


def test_plain_clients_at_a_tls_port_and_the_reverse_are_told_at_once(
    run_house: RunHouse, authority: Authority, server_files: ServerFiles
) -> None:
    async def scenario(house: House) -> None:
        secure = (await house.start_primary("a", tls=server_files)).server.address
        plain = (await house.start("b")).server.address
        caller = await house.knock("a")
        received = await caller.hello()
        assert received is not None
        assert isinstance(received[1], NotAllowed)
        assert received[1].code is NotAllowedCode.TLS_NEEDED
        assert await caller.receive() is None
        with pytest.raises(AccessDenied, match=r"speaks TLS only: .*PYTHIA_CLIENT_TLS_AUTHORITY_FILE"):
            await begun(secure)
        with pytest.raises(NoAnswer, match="speaks TLS only"):
            await asyncio.to_thread(ask_status, secure, 5_000)
        with pytest.raises(AccessDenied, match=r"does not speak TLS.*PYTHIA_CLIENT_TLS_AUTHORITY_FILE"):
            await begun(plain, tls_authority_file=authority.certificate)
        shown = Credentials(tls_authority_file=authority.certificate)
        with pytest.raises(NoAnswer, match="does not speak TLS"):
            await asyncio.to_thread(ask_status, plain, 5_000, shown)

    run_house(scenario)


def test_connections_that_never_shake_hands_are_let_go_and_hold_up_nobody(
    run_house: RunHouse, authority: Authority, server_files: ServerFiles, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tso.serving.tls_door")

    async def scenario(house: House) -> None:
        process = await house.start_primary("a", tls=server_files, hello_ms_max=200)
        silent, half = await house.knock("a"), await house.knock("a")
        half.writer.write(b"\x16\x03\x01")
        assert await begun(process.server.address, tls_authority_file=authority.certificate) == 1
        assert await silent.receive() is None
        assert await half.receive() is None

    run_house(scenario)
    assert re.search(r"no TLS with a client at \('127\.0\.0\.1', \d+\): it took too long", caplog.text)


def test_of_too_many_that_never_shake_hands_the_oldest_goes(
    run_house: RunHouse, authority: Authority, server_files: ServerFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tso.serving.tls_door.HANDSHAKES_MAX", 2)

    async def scenario(house: House) -> None:
        process = await house.start_primary("a", tls=server_files, hello_ms_max=60_000)
        silent = [await house.knock("a") for _ in range(2)]
        assert await begun(process.server.address, tls_authority_file=authority.certificate) == 1
        assert await silent[0].receive() is None, "it keeps others out"

    run_house(scenario)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_gets_no_ticket_by_which_it_would_show_no_certificate(
    authority: Authority, version: ssl.TLSVersion
) -> None:
    issued, shown = authority.issue("server"), authority.issue("client")
    client = client_context(authority.certificate, shown.certificate, shown.key)
    client.maximum_version = version
    plain = shaken_hands(server_context(issued), client)
    mutual = shaken_hands(server_context(replace(issued, client_authority=authority.certificate)), client)
    assert plain.session is not None
    assert plain.session.has_ticket
    assert mutual.session is not None
    assert not mutual.session.has_ticket


def shaken_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLObject:
    """The client's end of a connection of the two, once it has read what comes after the handshake."""
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(back, there, server_hostname="127.0.0.1"), server.wrap_bio(there, back, server_side=True)]
    for step in range(8):
        with contextlib.suppress(ssl.SSLWantReadError):
            ends[step % 2].do_handshake()
    with contextlib.suppress(ssl.SSLWantReadError):
        ends[0].read(1)
    return ends[0]


def test_a_certificate_that_could_not_be_read_for_a_while_is_read_again_as_it_is(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    files = authority.issue("server")
    tls = ServerTls(files, 0.0)
    first = tls.context(0.0)
    os.utime(files.certificate, (1, 1))

    def without_rights(files: ServerFiles, *, tells_why: bool) -> None:
        raise BadTls(f"certificate {files.certificate}: Permission denied")

    with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
        patch.setattr("access.tls.server_context", without_rights)
        assert {tls.context(look * LOOK_MS / 1000) for look in range(1, 4)} == {first}
    assert sum("Permission denied" in message for message in caplog.messages) == 1, "it is told of once"
    assert tls.context(4 * LOOK_MS / 1000) is not first, "rights may come back without a change of the file"


def test_certificates_are_read_again_and_broken_ones_change_nothing(
    run_house: RunHouse, authority: Authority, stranger: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = ServerFiles(str(tmp_path / "certificate"), str(tmp_path / "key"))

    def put(issued: ServerFiles) -> None:
        for name in ("certificate", "key"):
            fresh = tmp_path / f"{name}.new"
            shutil.copy(getattr(issued, name), fresh)
            os.replace(fresh, tmp_path / name)

    put(stranger.issue("first"))
    tls = ServerTls(files, 0.0)
    first = tls.context(0.0)
    put(authority.issue("second"))
    assert tls.context(LOOK_MS / 1000 / 2) is first, "files are looked at for every connection"
    second = tls.context(LOOK_MS / 1000)
    assert second is not first
    (tmp_path / "certificate").write_text("nonsense")
    with caplog.at_level(logging.ERROR):
        assert tls.context(2 * LOOK_MS / 1000) is second
    assert "TLS goes on with the files that were there before" in caplog.text

    async def scenario(house: House) -> None:
        put(stranger.issue("first"))
        process = await house.start_primary("a", tls=files)
        with pytest.raises(AccessDenied):
            await begun(process.server.address, tls_authority_file=authority.certificate)
        put(authority.issue("second"))
        clock_s = process.metering.clock_s
        process.metering.clock_s = lambda: clock_s() + LOOK_MS / 1000
        assert await begun(process.server.address, tls_authority_file=authority.certificate) == 1

    run_house(scenario)


def test_files_that_no_tls_can_be_made_of_are_named(authority: Authority, tmp_path: Path) -> None:
    good = authority.issue("good")
    for files, words in (
        (ServerFiles(str(tmp_path / "none"), good.key), "No such file"),
        (ServerFiles(good.certificate, authority.issue("other").key), "KEY_VALUES_MISMATCH"),
        (ServerFiles(good.certificate, good.key, str(tmp_path / "none")), "authority"),
    ):
        with pytest.raises(BadTls, match=words):
            server_context(files)


def test_nothing_below_tls_1_2_is_spoken(server_files: ServerFiles) -> None:
    assert server_context(server_files).minimum_version.name == "TLSv1_2"


def test_plain_callers_of_a_plain_port_are_as_before(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        await transact(await house.call("a"), [1])

    run_house(scenario)
