"""The one error of this room: bytes or values that are no frame of ours."""

from __future__ import annotations


class ProtocolError(ValueError):
    """What came, or what was to be sent, breaks the wire format; the text says how.

    ``request_id`` names the request it came with, 0 when that is not known: a server answers it there.
    """

    def __init__(self, reason: str, request_id: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.request_id = request_id
