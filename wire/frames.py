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
from typing import Final, NoReturn, final

from versions.formats import FRAMES
from wire.errors import ProtocolError

VERSION_LOWEST: Final = min(FRAMES.versions)
VERSION: Final = FRAMES.newest
"""The versions of the protocol that this side speaks, from the lowest to this one; the opening agrees on one."""
OPENING_VERSION: Final = 0
"""What frames have in the version's place whose layout never changes."""
FRAME_BYTES_MAX: Final = 2**20
"""The largest frame, header included, unless a reader is told otherwise. Whoever serves it serves nobody else until it
is done; larger write sets go ahead in parts (``wire.large_commits``)."""

_HEADER: Final = struct.Struct("<IIQ")
"""Version, kind and flags as one number (``_SIGNATURE_OF``), so that one look tells whether they are known."""
HEADER_BYTES: Final = 16
_LENGTH_BYTES: Final = 4
"""Of the header, at its begin: how long the payload is."""
assert _HEADER.size == HEADER_BYTES


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


_KINDS: Final = {int(kind): kind for kind in Kind}
OPENING_KINDS: Final = frozenset({Kind.HELLO_REQUEST, Kind.HELLO_REPLY, Kind.NOT_ALLOWED})
_VERSION_OF: Final = {int(kind): OPENING_VERSION if kind in OPENING_KINDS else VERSION for kind in Kind}
_SIGNATURE_OF: Final = {kind: _VERSION_OF[kind] + (int(kind) << 8) for kind in Kind}
_KIND_OF_SIGNATURE: Final = {signature: kind for kind, signature in _SIGNATURE_OF.items()}


@final
class Frame:
    """One message as it travels: its kind, the request it belongs to, and the bytes that `wire.messages` reads.

    Not a tuple: compiled, one of these is made and looked into at a fraction of the cost.
    """

    __slots__ = ("kind", "payload", "request_id")

    def __init__(self, kind: Kind, request_id: int, payload: bytes) -> None:
        self.kind = kind
        self.request_id = request_id
        self.payload = payload


def encode_frame(kind: Kind, request_id: int, payload: bytes, *, frame_bytes_max: int = FRAME_BYTES_MAX) -> bytes:
    """The bytes of one frame. Raises ``ProtocolError`` when it would be larger than ``frame_bytes_max``."""
    if HEADER_BYTES + len(payload) > frame_bytes_max:
        raise _too_long(len(payload), frame_bytes_max, request_id)
    try:
        return _HEADER.pack(len(payload), _SIGNATURE_OF[kind], request_id) + payload
    except struct.error:
        raise ProtocolError(f"a request id is an unsigned 64-bit integer, not {request_id}") from None


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
        self._chunk = b""
        self._position = 0
        """Up to where ``_chunk`` was cut."""
        self._rest = bytearray()
        self._broken: ProtocolError | None = None

    @property
    def buffered_bytes(self) -> int:
        """Bytes held of a frame that is not whole yet."""
        return len(self._rest)

    def take_up_to(self, frame_bytes_max: int) -> None:
        """From the next frame on, this is the limit."""
        self._payload_bytes_max = frame_bytes_max - HEADER_BYTES

    def feed(self, data: bytes) -> Iterator[Frame]:
        """``take`` a chunk, and give every frame that is whole now. Raises ``ProtocolError`` as ``next_frame`` does."""
        self.take(data)
        return iter(self.next_frame, None)

    def take(self, data: bytes) -> None:
        """Take in a chunk: its frames are to be asked for until there is none, before the next one.

        Raises ``ProtocolError`` where there was a wrong frame before.
        """
        if self._broken is not None:
            raise self._broken
        if self._rest:  # as a rule a chunk is whole frames: nothing is copied but their payloads
            data = self._completed(data)
        self._chunk, self._position = data, 0

    def next_frame(self) -> Frame | None:
        """The next whole frame of what was taken; ``None``: the rest of it is kept for the next ``take``.

        Raises ``ProtocolError`` at the first wrong one, after those before it were given.
        """
        chunk, position = self._chunk, self._position
        left = len(chunk) - position
        if left >= HEADER_BYTES:
            header: tuple[int, int, int] = _HEADER.unpack_from(chunk, position)
            payload_bytes, signature, request_id = header
            kind = _KIND_OF_SIGNATURE.get(signature)
            if kind is None or payload_bytes > self._payload_bytes_max:
                self._refuse(payload_bytes, signature, request_id)
            frame_bytes = HEADER_BYTES + payload_bytes
            if frame_bytes <= left:
                self._position = position + frame_bytes
                return Frame(kind, request_id, chunk[position + HEADER_BYTES : position + frame_bytes])
        if left:
            self._rest += chunk[position:]
        self._chunk, self._position = b"", 0
        return None

    def _completed(self, data: bytes) -> bytes:
        """All that is held; nothing while it is a frame whose header ``next_frame`` has judged, and not whole."""
        rest = self._rest
        is_judged = len(rest) >= HEADER_BYTES
        rest += data
        if is_judged and len(rest) < HEADER_BYTES + int.from_bytes(rest[:_LENGTH_BYTES], "little"):
            return b""
        self._rest = bytearray()
        return bytes(rest)

    def _refuse(self, payload_bytes: int, signature: int, request_id: int) -> NoReturn:
        """Raises what is wrong with a frame, now and from now on."""
        self._broken = self._what_is_wrong(payload_bytes, signature, request_id)
        raise self._broken

    def _what_is_wrong(self, payload_bytes: int, signature: int, request_id: int) -> ProtocolError:
        version, kind, flags = signature & 0xFF, signature >> 8 & 0xFF, signature >> 16
        if version not in (VERSION, OPENING_VERSION):
            return ProtocolError(f"version {version} of the protocol is not spoken here: this side speaks {VERSION}")
        if kind not in _KINDS:
            return ProtocolError(f"there is no frame of kind {kind}", request_id)
        if version != _VERSION_OF[kind]:
            return ProtocolError(f"a frame of kind {kind} has version {_VERSION_OF[kind]}, not {version}", request_id)
        if flags != 0:
            return ProtocolError(f"flags {flags:#06x} are not known: version {VERSION} has none", request_id)
        return _too_long(payload_bytes, HEADER_BYTES + self._payload_bytes_max, request_id)
