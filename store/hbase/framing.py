"""The length that goes before each message of the framed transport."""

from __future__ import annotations

import struct
from typing import Final

LENGTH: Final = struct.Struct(">I")
FRAME_BYTES_MAX: Final = 2**31 - 1
"""What HBase's gateway sends at most, and what we take."""


def framed(message: bytes | bytearray) -> bytes:
    """``message`` with its length before it."""
    return LENGTH.pack(len(message)) + message


def first_frame(arrived: bytearray) -> bytes | None:
    """The message of the first frame, which is taken out; ``None``: it is not whole. Raises ``ConnectionError``."""
    if len(arrived) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack_from(arrived)
    if length > FRAME_BYTES_MAX:
        raise ConnectionError(f"it sent a frame of {length} bytes")
    end = LENGTH.size + length
    if len(arrived) < end:
        return None
    frame = bytes(arrived[LENGTH.size : end])
    del arrived[:end]
    return frame
