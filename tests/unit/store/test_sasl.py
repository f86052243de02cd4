"""The talk by which both sides agree, and sealed frames: without a socket."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from access.gssapi import KerberosFailure
from access.sasl import Agreement, Layer, NotAgreed
from store.hbase.sasl import Negotiation, Refused, Sealing, Status
from tests.socket_frames import framed
from tests.unit.store.half_kerberos import HELLO, PROOF, HalfContext

LAYERS = st.sampled_from(list(Layer))


def message(status: int, payload: bytes) -> bytes:
    return struct.pack(">BI", status, len(payload)) + payload


def offer(layers: int, takes_bytes_max: int = 2**16) -> bytes:
    content = bytes([layers]) + takes_bytes_max.to_bytes(3)
    return message(Status.OK, HalfContext().wrap(content, confidential=False))


def in_pieces(take: Callable[[bytes], bytes], arriving: bytes, data: st.DataObject) -> bytes:
    given_out, at = b"", 0
    while at < len(arriving):
        length = data.draw(st.integers(1, len(arriving)))
        given_out += take(arriving[at : at + length])
        at += length
    return given_out


def begun() -> Negotiation:
    agreement = Agreement(HalfContext(), Layer.CONFIDENTIALITY)
    negotiation = Negotiation(agreement)
    assert negotiation.begin(agreement.begin()) == message(Status.START, b"GSSAPI") + message(Status.OK, HELLO)
    return negotiation


def proven() -> Negotiation:
    negotiation = begun()
    assert negotiation.feed(message(Status.OK, PROOF)) == message(Status.OK, b"")
    return negotiation


@pytest.mark.parametrize("layers", range(1, 8))
def test_the_strongest_layer_that_is_offered_is_taken(layers: int) -> None:
    negotiation = proven()
    answer = negotiation.feed(offer(layers))
    taken = max(layer for layer in Layer if layer & layers)
    size = b"\0\0\0" if taken == Layer.NONE else b"\xff\xff\xff"
    chosen = HalfContext().wrap(bytes([taken]) + size, confidential=False)
    assert answer == message(Status.COMPLETE, chosen)
    assert (negotiation.feed(b""), negotiation.is_done) == (b"", False)
    assert (negotiation.feed(message(Status.COMPLETE, b"")), negotiation.is_done) == (b"", True)
    assert (negotiation.sealing is None) == (taken == Layer.NONE)


@given(LAYERS, st.data())
def test_what_comes_in_pieces_is_what_comes_at_once(layer: Layer, data: st.DataObject) -> None:
    arriving = message(Status.OK, PROOF) + offer(layer) + message(Status.COMPLETE, b"")
    negotiation, at_once = begun(), begun()
    sent = in_pieces(negotiation.feed, arriving, data)
    assert sent == at_once.feed(arriving)
    assert negotiation.is_done


@pytest.mark.parametrize("status", [Status.START, Status.COMPLETE])
@pytest.mark.parametrize("make", [begun, proven])
def test_nothing_is_agreed_on_before_the_gateway_has_shown_who_it_is(
    make: Callable[[], Negotiation], status: Status
) -> None:
    negotiation = make()
    with pytest.raises(NotAgreed, match=f"said {status.name} in the middle"):
        negotiation.feed(message(status, PROOF))
    assert not negotiation.is_done


def test_a_gateway_that_is_somebody_else_is_sent_nothing() -> None:
    negotiation = begun()
    with pytest.raises(KerberosFailure, match="proves nothing"):
        negotiation.feed(message(Status.OK, b"another's"))
    assert not negotiation.is_done


@pytest.mark.parametrize("status", [Status.BAD, Status.ERROR])
def test_what_a_gateway_says_of_its_refusal_is_told(status: Status) -> None:
    with pytest.raises(Refused, match=r"^GSS initiate failed$"):
        begun().feed(message(status, b"GSS initiate failed"))
    with pytest.raises(Refused, match=r"^x{300}$"):
        begun().feed(message(status, b"x" * 1_000))


@pytest.mark.parametrize(
    "arriving",
    [b"\x80\x01\x00\x02", b"\x00", b"HTTP/1.1 400", message(Status.OK, b"")[:1] + b"\xff\xff\xff\xff"],
)
def test_who_speaks_something_else_is_told_so_at_once(arriving: bytes) -> None:
    with pytest.raises(NotAgreed, match=r"something else: .* has no kerberos:// in its address"):
        begun().feed(arriving)


@pytest.mark.parametrize("content", [b"\0\0\0\0", b"\x08\0\0\0", b"\1\0\0", b""])
def test_an_offer_has_a_layer_and_a_size(content: bytes) -> None:
    negotiation = proven()
    with pytest.raises(NotAgreed, match="offers nothing"):
        negotiation.feed(message(Status.OK, HalfContext().wrap(content, confidential=False)))


def test_bytes_after_the_end_are_nobodys() -> None:
    negotiation = proven()
    negotiation.feed(offer(Layer.NONE))
    with pytest.raises(NotAgreed, match="3 bytes that nobody asked for"):
        negotiation.feed(message(Status.COMPLETE, b"") + b"abc")


@given(st.lists(st.binary(max_size=40), min_size=1), st.booleans(), st.integers(1_025, 1_060), st.data())
def test_frames_are_the_same_when_they_are_unsealed(
    contents: list[bytes], confidential: bool, takes_bytes_max: int, data: st.DataObject
) -> None:
    """Whatever pieces they are handed over in; each part no larger than the other side takes it."""
    contexts = HalfContext(), HalfContext()
    ours, theirs = (Sealing(context, confidential=confidential, sent_bytes_max=takes_bytes_max) for context in contexts)
    sent = in_pieces(ours.seal, b"".join(map(framed, contents)), data)
    opened = in_pieces(theirs.unseal, sent, data)
    part = takes_bytes_max - 1_024
    parts = [content[start : start + part] for content in contents for start in range(0, len(content), part)]
    assert contexts[0].wrapped == parts
    assert opened == b"".join(map(framed, parts))


def test_a_frame_that_is_absurd_is_refused_before_it_comes() -> None:
    sealing = Sealing(HalfContext(), confidential=True, sent_bytes_max=2**16)
    with pytest.raises(ConnectionError, match="a frame of 4294967295 bytes"):
        sealing.unseal(b"\xff\xff\xff\xff")


def test_a_frame_that_is_not_sealed_as_agreed_on_is_an_error() -> None:
    sealing = Sealing(HalfContext(), confidential=True, sent_bytes_max=2**16)
    with pytest.raises(ConnectionError, match="as agreed on by Kerberos: not sealed as it should be"):
        sealing.unseal(framed(HalfContext().wrap(b"clear", confidential=False)))
