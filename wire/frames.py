"""Frames: how a stream of bytes is cut into messages, before anyone looks into them.

A frame is a header of 16 bytes, little-endian, and a payload: ``length u32`` (bytes of payload), ``version u8``,
``kind u8``, ``flags u16`` (must be 0), ``request u64`` (chosen by the asker, repeated in the answer, so that many
requests can be under way on one connection).

Invariant: whatever bytes come in, a decoder gives valid frames or a ``ProtocolError``, and holds no more than one
frame of ``frame_bytes_max`` and the chunk last fed. A length is judged before any room is made for it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from wire.errors import ProtocolError

VERSION = 1
FRAME_BYTES_MAX = 16 * 2**20
"""The largest frame, header included, unless a reader is told otherwise."""

_HEADER = struct.Struct("<IBBHQ")
HEADER_BYTES = _HEADER.size
_REQUEST_ID_MAX = 2**64 - 1


class Kind(IntEnum):
    """What a frame's payload is. Requests are odd, below 128; answers even; refusals start at 128."""

    BEGIN_REQUEST = 1
    BEGIN_REPLY = 2
    COMMIT_REQUEST = 3
    COMMIT_REPLY = 4
    ABORT_REQUEST = 5
    OUTCOME_REPLY = 6
    OUTCOME_REQUEST = 7
    STATUS_REPLY = 8
    STATUS_REQUEST = 9
    HEARTBEAT_REPLY = 10
    HEARTBEAT_REQUEST = 11
    HANDOVER_REPLY = 12
    HANDOVER_REQUEST = 13
    NOT_PRIMARY = 128
    OVERLOADED = 129
    BAD_REQUEST = 130


_KINDS = {int(kind): kind for kind in Kind}


@dataclass(frozen=True, slots=True)
class Frame:
    """One message as it travels: its kind, the request it belongs to, and the bytes that `wire.messages` reads."""

    kind: Kind
    request_id: int
    payload: bytes


def encode_frame(kind: Kind, request_id: int, payload: bytes, *, frame_bytes_max: int = FRAME_BYTES_MAX) -> bytes:
    """The bytes of one frame. Raises ``ProtocolError`` when it would be larger than ``frame_bytes_max``."""
    if not 0 <= request_id <= _REQUEST_ID_MAX:
        raise ProtocolError(f"a request id is an unsigned 64-bit integer, not {request_id}")
    _check_length(len(payload), frame_bytes_max, request_id)
    return _HEADER.pack(len(payload), VERSION, kind, 0, request_id) + payload


def _check_length(payload_bytes: int, frame_bytes_max: int, request_id: int) -> None:
    if HEADER_BYTES + payload_bytes > frame_bytes_max:
        raise ProtocolError(
            f"a frame of {HEADER_BYTES + payload_bytes} bytes is over the limit of {frame_bytes_max}: "
            "send fewer transactions or cells in one frame",
            request_id,
        )


@dataclass(frozen=True, slots=True)
class _Header:
    payload_bytes: int
    kind: Kind
    request_id: int


class FrameDecoder:
    """Cuts what one connection receives into frames, however the chunks fall.

    After the first ``ProtocolError`` there is no telling where the next frame starts: every later ``feed`` raises it
    again, and the connection is to be closed.
    """

    def __init__(self, *, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._buffer = bytearray()
        self._broken: ProtocolError | None = None

    @property
    def buffered_bytes(self) -> int:
        """Bytes held of a frame that is not whole yet."""
        return len(self._buffer)

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[Frame]:
        """Take in a chunk, give the frames that are whole now, raise ``ProtocolError`` at the first wrong one.

        The frames before the wrong one are given first. The iterator must be used up before the next ``feed``.
        """
        if self._broken is not None:
            raise self._broken
        self._buffer += data
        return self._whole_frames()

    def _whole_frames(self) -> Iterator[Frame]:
        position = 0
        try:
            while (header := self._header(position)) is not None:
                start = position + HEADER_BYTES
                if start + header.payload_bytes > len(self._buffer):
                    return
                position = start + header.payload_bytes
                yield Frame(header.kind, header.request_id, self._copy(start, position))
        except ProtocolError as error:
            self._broken = error
            raise
        finally:
            del self._buffer[:position]

    def _copy(self, start: int, end: int) -> bytes:
        with memoryview(self._buffer) as view:
            return bytes(view[start:end])

    def _header(self, position: int) -> _Header | None:
        if len(self._buffer) - position < HEADER_BYTES:
            return None
        payload_bytes, version, kind, flags, request_id = _HEADER.unpack_from(self._buffer, position)
        if version != VERSION:
            raise ProtocolError(f"version {version} of the protocol is not spoken here: this side speaks {VERSION}")
        if kind not in _KINDS:
            raise ProtocolError(f"there is no frame of kind {kind}", request_id)
        if flags != 0:
            raise ProtocolError(f"flags {flags:#06x} are not known: version {VERSION} has none", request_id)
        _check_length(payload_bytes, self._frame_bytes_max, request_id)
        return _Header(payload_bytes, _KINDS[kind], request_id)
