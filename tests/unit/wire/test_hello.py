"""The opening of a connection: frozen byte by byte, whatever version comes, and read without trust."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.imports import ROOT
from versions import RELEASE
from wire import (
    HELLO_BYTES_MAX,
    BadRequest,
    FrameDecoder,
    Greeting,
    HelloReply,
    HelloRequest,
    NotAllowed,
    NotAllowedCode,
    Overloaded,
    ProtocolError,
    StatusRequest,
    decode,
    encode,
)

PATIENT = settings(deadline=None, suppress_health_check=(HealthCheck.too_slow,))

HELLO = bytes.fromhex("14000000 00 15 0000 0000000000000000 02 07 04000000 312e3263 06000000 736563726574")
WELCOME = bytes.fromhex("14000000 00 14 0000 0000000000000000 03 01 04 05000000 302e312e30 04000000 72656164")
REFUSAL = bytes.fromhex("0a000000 00 83 0000 0000000000000000 02 05000000 776f726473")


def only(raw: bytes) -> object:
    [frame] = FrameDecoder().feed(raw)
    assert frame.request_id == 0
    return decode(frame)


def test_a_hello_is_these_bytes_for_good() -> None:
    """With versions that do not exist yet: this side has to understand them all the same."""
    hello = HelloRequest("secret", 2, 7, "1.2c")
    assert encode(hello, 0) == HELLO
    assert only(HELLO) == hello


def test_a_welcome_is_these_bytes_for_good() -> None:
    welcome = HelloReply(3, ("read",), 1, 4, "0.1.0")
    assert encode(welcome, 0) == WELCOME
    assert only(WELCOME) == welcome


def test_a_refusal_is_these_bytes_for_good() -> None:
    refusal = NotAllowed(NotAllowedCode.UNKNOWN_TOKEN, "words")
    assert encode(refusal, 0) == REFUSAL
    assert only(REFUSAL) == refusal


def test_a_refusal_of_a_later_release_is_understood_by_its_words() -> None:
    later = only(REFUSAL.replace(b"\x02\x05", b"\xc8\x05"))
    assert later == NotAllowed(NotAllowedCode.UNKNOWN, "words")


@pytest.mark.parametrize("version", [1, 2, 255])
def test_a_hello_has_no_version_of_the_protocol(version: int) -> None:
    with pytest.raises(ProtocolError, match="version"):
        only(HELLO[:4] + bytes([version]) + HELLO[5:])


def test_other_frames_have_one() -> None:
    request = encode(StatusRequest(), 0)
    with pytest.raises(ProtocolError, match="version 1, not 0"):
        only(request[:4] + b"\0" + request[5:])


@pytest.mark.parametrize(("lowest", "highest"), [(0, 1), (2, 1), (1, 256)])
def test_versions_are_a_range(lowest: int, highest: int) -> None:
    with pytest.raises(ProtocolError, match="range"):
        HelloRequest("", lowest, highest)


def test_a_token_is_not_shown_and_not_longer_than_a_hello_takes() -> None:
    assert "secret" not in repr(HelloRequest("secret"))
    with pytest.raises(ProtocolError, match="longer than 1024"):
        HelloRequest("x" * 1025)
    assert len(encode(HelloRequest("x" * 1024, release="y" * 1024), 0)) <= HELLO_BYTES_MAX


def test_the_release_is_the_packages() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == RELEASE


@pytest.mark.parametrize(
    "answer",
    [HelloReply(1, ("read",)), NotAllowed(NotAllowedCode.EXPIRED, "no"), Overloaded(20), BadRequest("no hello")],
)
def test_a_greeting_is_answered_however_the_answer_is_cut(answer: HelloReply) -> None:
    greeting, raw = Greeting("secret"), encode(answer, 0)
    assert only(greeting.first) == HelloRequest("secret")
    for position in range(len(raw) - 1):
        assert greeting.received(raw[position : position + 1]) is None
    assert greeting.received(raw[-1:]) == answer


def test_what_is_no_answer_to_a_hello_is_refused() -> None:
    with pytest.raises(ProtocolError, match="no answer to a hello"):
        Greeting("").received(encode(StatusRequest(), 0))


@PATIENT
@given(st.binary(max_size=60))
def test_any_payload_of_an_opening_is_read_or_refused(payload: bytes) -> None:
    for kind in (0x14, 0x15, 0x83):
        raw = len(payload).to_bytes(4, "little") + bytes([0, kind, 0, 0]) + bytes(8) + payload
        try:
            message = only(raw)
        except ProtocolError:
            continue
        assert isinstance(message, HelloRequest | HelloReply | NotAllowed)
