"""What every message has in common: a kind, a payload, and equality of bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from wire.columns import PayloadReader, column
from wire.frames import Kind


class Message(ABC):
    """A message of any kind."""

    KIND: ClassVar[Kind]
    __slots__ = ()

    @abstractmethod
    def payload(self) -> bytes:
        """The bytes after the header."""

    @classmethod
    @abstractmethod
    def read(cls, reader: PayloadReader) -> Message:
        """The message whose payload is in ``reader``. Raises ``ProtocolError``."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self.KIND == other.KIND and self.payload() == other.payload()

    def __hash__(self) -> int:
        return hash((self.KIND, self.payload()))

    def _set_column(self, name: str, dtype: np.dtype[Any]) -> None:
        object.__setattr__(self, name, column(name, getattr(self, name), dtype))
