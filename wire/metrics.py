"""The numbers of one oracle process, as a monitoring system reads them.

A reply names each of its samples, so that an exporter of another release still understands it: what it does not know
it passes on, what it misses is not there. Invariant: every name is a legal sample of Prometheus, given once, and every
value is a finite number. What the names mean is in `wire.metric_families`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wire.columns import CODE, PayloadReader, check_not_empty, count_bytes, number_bytes, read_count, text_bytes
from wire.errors import ProtocolError
from wire.frames import Kind
from wire.message import Message
from wire.service import Role

VALUE = np.dtype("<f8")
SAMPLES_MAX = 10_000
_LABEL = r'[a-z][a-z0-9_]*="[A-Za-z0-9_.:+-]*"'
SAMPLE = re.compile(rf"(?P<name>[a-z][a-z0-9_]*)(\{{(?P<labels>{_LABEL}(,{_LABEL})*)\}})?", re.ASCII)
"""A metric's name and its labels, such as ``pythia_refusals_total{answer="overloaded"}``."""


@dataclass(frozen=True, slots=True, eq=False)
class MetricsRequest(Message):
    """What have you counted? Answered by every process, standby or primary. Layout: nothing."""

    KIND = Kind.METRICS_REQUEST

    def payload(self) -> bytes:
        """The bytes after the header."""
        return b""

    @classmethod
    def read(cls, reader: PayloadReader) -> MetricsRequest:
        """The message in ``reader``. Raises ``ProtocolError``."""
        return cls()


@dataclass(frozen=True, slots=True, eq=False)
class MetricsReply(Message):
    """The samples of one process, in its own order.

    Layout: n u32, zero u32, values f64[n], role u8, then holder, address and the names as texts (length in bytes u32,
    UTF-8); the names one a line.
    """

    KIND = Kind.METRICS_REPLY
    role: Role
    holder: str
    address: str
    names: tuple[str, ...]
    """Each as ``SAMPLE`` has it."""
    values: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", np.ascontiguousarray(self.values, VALUE))
        check_not_empty("values", self.values)
        if self.values.ndim != 1 or len(self.names) != self.values.size or self.values.size > SAMPLES_MAX:
            raise ProtocolError(
                f"each sample has a name and a value, {SAMPLES_MAX} at most, not {len(self.names)} names and "
                f"{self.values.size} values"
            )
        if not np.isfinite(self.values).all():
            raise ProtocolError("a sample is a finite number")
        if len(set(self.names)) != len(self.names):
            raise ProtocolError("a sample is given once")
        for name in self.names:
            if SAMPLE.fullmatch(name) is None:
                raise ProtocolError(f"{name!r} is not the name of a sample")

    def payload(self) -> bytes:
        """The bytes after the header."""
        texts = b"".join(text_bytes(text) for text in (self.holder, self.address, "\n".join(self.names)))
        return count_bytes(self.values.size) + self.values.tobytes() + number_bytes(self.role, CODE) + texts

    @classmethod
    def read(cls, reader: PayloadReader) -> MetricsReply:
        """The message in ``reader``. Raises ``ProtocolError``."""
        values = reader.take("values", VALUE, read_count(reader))
        role = reader.number(CODE)
        if role > max(Role):
            raise ProtocolError(f"there is no role {role}")
        holder, address, names = reader.text(), reader.text(), reader.text()
        return cls(Role(role), holder, address, tuple(names.split("\n")), values)
