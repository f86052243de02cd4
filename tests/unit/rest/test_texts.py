"""Bytes as texts, and back: each text stands for the bytes that it says on every release of Python, or for none."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rest.problems import Problem
from rest.texts import to_bytes, to_text


@given(st.binary(max_size=20))
def test_base64_of_either_alphabet_padded_or_not(data: bytes) -> None:
    for encoded in (base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()):
        assert to_bytes(encoded, "base64") == to_bytes(encoded.rstrip("="), "base64") == data
    assert to_bytes(to_text(data, "base64"), "base64") == data


@pytest.mark.parametrize(
    "text", ["ZDph=", "ZDph====", "ZDpiYg=", "ZDpiYg===", "=", "====", "Z", "Z===", "ZD=ph", "ZD ph", "ZDph\n", "ZDphé"]
)
def test_what_is_no_base64_is_refused(text: str) -> None:
    with pytest.raises(Problem, match="is not base64"):
        to_bytes(text, "base64")
