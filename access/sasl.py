"""SASL's mechanism GSSAPI (RFC 4752), the client's side: what is said, without the messages that it is said in.

The invariant: nothing of ours is sent before the other side has shown that it is whom it was asked for as; and of the
layers that it offers the strongest is taken that is spoken here.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Protocol

_OFFER_BYTES: Final = 4
_RECEIVED_BYTES_MAX: Final = 2**24 - 1
"""All that three bytes can say."""


class Layer(IntEnum):
    """What is done to each frame afterwards, as RFC 4752 numbers it; a larger one does all that a smaller one does."""

    NONE = 1
    INTEGRITY = 2
    CONFIDENTIALITY = 4


class Context(Protocol):
    """What both sides agree on: ``access.gssapi.SecurityContext``."""

    is_complete: bool

    def step(self, token: bytes) -> bytes:
        """See there."""

    def wrap(self, data: bytes, *, confidential: bool) -> bytes:
        """See there."""

    def unwrap(self, data: bytes, *, confidential: bool) -> bytes:
        """See there."""


class NotAgreed(ConnectionError):
    """The other side speaks something else, or not as it should."""


class Agreement:
    """What comes to be agreed on by ``context``. ``layer``: what was; ``None``: nothing yet.

    ``sent_bytes_max``: how much the other side takes in one frame, where there is a layer. Every method raises what the
    context does.
    """

    def __init__(self, context: Context, strongest: Layer) -> None:
        self.context = context
        self.layer: Layer | None = None
        self.sent_bytes_max = 0
        self._strongest = strongest

    def begin(self) -> bytes:
        """What to send first. The context may ask the KDC for it."""
        return self.context.step(b"")

    def answer(self, token: bytes) -> bytes:
        """What to send after ``token`` came; the last one is what names the layer. Raises ``NotAgreed``."""
        if not self.context.is_complete:
            return self.context.step(token)
        return self._choose(self.context.unwrap(token, confidential=False))

    def _choose(self, offer: bytes) -> bytes:
        """The answer to the layers that are offered (a bit each)."""
        offered = [layer for layer in Layer if len(offer) == _OFFER_BYTES and offer[0] & layer]
        spoken = [layer for layer in offered if layer <= self._strongest]
        if not spoken:
            names = ", ".join(layer.name for layer in offered) or "nothing"
            raise NotAgreed(f"it offers {names} to agree on")
        self.layer = spoken[-1]
        received_bytes_max = 0
        if self.layer is not Layer.NONE:
            self.sent_bytes_max, received_bytes_max = int.from_bytes(offer[1:]), _RECEIVED_BYTES_MAX
        return self.context.wrap(bytes([self.layer]) + received_bytes_max.to_bytes(3), confidential=False)
