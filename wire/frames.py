"""Frames: how a stream of bytes is cut into messages, before anyone looks into them.

A frame is a header of 16 bytes, little-endian, and a payload: ``length u32`` (bytes of payload), ``version u8``,
``kind u8``, ``flags u16`` (must be 0), ``request u64`` (chosen by the asker, repeated in the answer, so that many
requests can be under way on one connection).

Frames of the opening (`wire.hello`) have 0 where others have a version: their layout, this header's included, is the
same in all versions for good, so that two sides that have no version in common can still tell each other so.

Invariant: whatever bytes come in, a decoder gives valid frames or a ``ProtocolError``, and holds no more than one
frame of ``frame_bytes_max`` and the chunk last fed. A length is judged before any room is made for it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from functools import partial
from typing import NamedTuple, NoReturn

from versions.formats import FRAMES
from wire.errors import ProtocolError

VERSION_LOWEST = min(FRAMES.versions)
VERSION = FRAMES.newest
"""The versions of the protocol that this side speaks, from the lowest to this one; the opening agrees on one."""
OPENING_VERSION = 0
"""What frames have in the version's place whose layout never changes."""
FRAME_BYTES_MAX = 2**20
"""The largest frame, header included, unless a reader is told otherwise. Whoever serves it serves nobody else until it
is done; larger write sets go ahead in parts (``wire.large_commits``)."""

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
    WRITE_SET_TAKEN = 14
    WRITE_SET_PART = 15
    LARGE_COMMIT_REQUEST = 17
    METRICS_REPLY = 18
    METRICS_REQUEST = 19
    HELLO_REPLY = 20
    HELLO_REQUEST = 21
    DRAIN_REPLY = 22
    DRAIN_REQUEST = 23
    LIVES_REPLY = 24
    LIVES_REQUEST = 25
    DETAILS_REPLY = 26
    DETAILS_REQUEST = 27
    HINDRANCE_REPLY = 28
    HINDRANCE_REQUEST = 29
    NOT_PRIMARY = 128
    OVERLOADED = 129
    BAD_REQUEST = 130
    NOT_ALLOWED = 131


_KINDS = {int(kind): kind for kind in Kind}
OPENING_KINDS = frozenset({Kind.HELLO_REQUEST, Kind.HELLO_REPLY, Kind.NOT_ALLOWED})
_VERSION_OF = {int(kind): OPENING_VERSION if kind in OPENING_KINDS else VERSION for kind in Kind}


class Frame(NamedTuple):
    """One message as it travels: its kind, the request it belongs to, and the bytes that `wire.messages` reads."""

    kind: Kind
    request_id: int
    payload: bytes


_FRAME = partial(tuple.__new__, Frame)
"""Makes one of a tuple at half of the cost of ``Frame(…)``."""


def encode_frame(kind: Kind, request_id: int, payload: bytes, *, frame_bytes_max: int = FRAME_BYTES_MAX) -> bytes:
    """The bytes of one frame. Raises ``ProtocolError`` when it would be larger than ``frame_bytes_max``."""
    if not 0 <= request_id <= _REQUEST_ID_MAX:
        raise ProtocolError(f"a request id is an unsigned 64-bit integer, not {request_id}")
    if HEADER_BYTES + len(payload) > frame_bytes_max:
        raise _too_long(len(payload), frame_bytes_max, request_id)
    return _HEADER.pack(len(payload), _VERSION_OF[kind], kind, 0, request_id) + payload


def _too_long(payload_bytes: int, frame_bytes_max: int, request_id: int) -> ProtocolError:
    return ProtocolError(
        f"a frame of {HEADER_BYTES + payload_bytes} bytes is over the limit of {frame_bytes_max}: "
        "send fewer transactions or cells in one frame",
        request_id,
    )


class FrameDecoder:
    """Cuts what one connection receives into frames, however the chunks fall.

    After the first ``ProtocolError`` there is no telling where the next frame starts: every later ``feed`` raises it
    again, and the connection is to be closed.
    """

    def __init__(self, *, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._payload_bytes_max = frame_bytes_max - HEADER_BYTES
        self._rest = bytearray()
        self._broken: ProtocolError | None = None

    @property
    def buffered_bytes(self) -> int:
        """Bytes held of a frame that is not whole yet."""
        return len(self._rest)

    def take_up_to(self, frame_bytes_max: int) -> None:
        """From the next frame on, this is the limit."""
        self._payload_bytes_max = frame_bytes_max - HEADER_BYTES

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[Frame]:
        """Take in a chunk, give the frames that are whole now, raise ``ProtocolError`` at the first wrong one.

        The frames before the wrong one are given first. The iterator must be used up before the next ``feed``, and
        ``data`` must not change before that; nothing of it is held afterwards.
        """
        if self._broken is not None:
            raise self._broken
        if self._rest:  # as a rule a chunk is whole frames: nothing is copied but their payloads
            self._rest += data
            return self._whole_frames(self._rest)
        return self._whole_frames(data)

    def _whole_frames(self, data: bytes | bytearray | memoryview) -> Iterator[Frame]:
        position, size = 0, len(data)
        try:
            while size - position >= HEADER_BYTES:
                payload_bytes, version, kind, flags, request_id = _HEADER.unpack_from(data, position)
                if version != _VERSION_OF.get(kind) or flags or payload_bytes > self._payload_bytes_max:
                    self._refuse(payload_bytes, version, kind, flags, request_id)
                end = position + HEADER_BYTES + payload_bytes
                if end > size:
                    break
                frame: Frame = _FRAME((_KINDS[kind], request_id, bytes(data[position + HEADER_BYTES : end])))
                position = end
                yield frame
            if data is not self._rest:
                if position < size:
                    self._rest += data[position:]
            elif position:
                self._rest = self._rest[position:]
        except ProtocolError as error:
            self._broken = error
            raise

    def _refuse(self, payload_bytes: int, version: int, kind: int, flags: int, request_id: int) -> NoReturn:
        if version not in (VERSION, OPENING_VERSION):
            raise ProtocolError(f"version {version} of the protocol is not spoken here: this side speaks {VERSION}")
        if kind not in _KINDS:
            raise ProtocolError(f"there is no frame of kind {kind}", request_id)
        if version != _VERSION_OF[kind]:
            raise ProtocolError(f"a frame of kind {kind} has version {_VERSION_OF[kind]}, not {version}", request_id)
        if flags != 0:
            raise ProtocolError(f"flags {flags:#06x} are not known: version {VERSION} has none", request_id)
        raise _too_long(payload_bytes, HEADER_BYTES + self._payload_bytes_max, request_id)
