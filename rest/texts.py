"""Bytes as JSON has them: UTF-8 text, or base64. Pure.

The invariant: what was written in an encoding is read back in it as the same bytes, or refused.
"""

from __future__ import annotations

import base64
import binascii
from typing import Literal

from rest.problems import Problem

Encoding = Literal["utf-8", "base64"]


def to_bytes(text: str, encoding: Encoding) -> bytes:
    """The bytes that a text stands for; base64 of either alphabet, padded or not at all. Raises ``Problem``."""
    if encoding == "utf-8":
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            raise Problem("invalid-request", f"{text!r} holds a surrogate, which UTF-8 has not: {error}") from None
    digits = text.rstrip("=")
    padding = "=" * (-len(digits) % 4)
    if text not in (digits, digits + padding):  # Python before 3.13 takes as much of it as there is
        raise Problem("invalid-request", f"{text[:80]!r} is not base64: it is padded by {padding!r}, or not at all")
    try:
        return base64.b64decode(digits.replace("-", "+").replace("_", "/") + padding, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Problem("invalid-request", f"{text[:80]!r} is not base64: {error}") from None


def to_text(data: bytes, encoding: Encoding) -> str:
    """The text that stands for bytes. Raises ``Problem`` where they are no UTF-8."""
    if encoding == "base64":
        return base64.b64encode(data).decode()
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Problem("not-text", f"{data[:80]!r} is not UTF-8") from None


def to_values(values: dict[str, str], encoding: Encoding) -> dict[bytes, bytes]:
    """Column → value, as bytes. Raises ``Problem``, also where two texts are one column: base64 has several of it."""
    found = {to_bytes(column, encoding): to_bytes(value, encoding) for column, value in values.items()}
    if len(found) < len(values):
        raise Problem("invalid-request", "two of the columns are the same one: give each a single value")
    return found


def to_texts(values: dict[bytes, bytes], encoding: Encoding) -> dict[str, str]:
    """Column → value, as texts."""
    return {to_text(column, encoding): to_text(value, encoding) for column, value in values.items()}


def columns_of(columns: list[str] | None, encoding: Encoding) -> list[bytes] | None:
    """A choice of columns; ``None``: all."""
    return None if columns is None else [to_bytes(column, encoding) for column in columns]
