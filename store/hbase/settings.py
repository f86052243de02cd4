"""Every limit of the adapter in one place, with its unit in its name, checked when it is set.

The invariant behind ``idle_ms_max``: a connection is thrown away by us before the gateway drops it
(``hbase.thrift.server.socket.read.timeout``, 60 s unless configured), so that a call never starts on one that is dead.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from access.services import Kerberos, TlsFiles


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """How connections to the gateway are made, kept, and replaced.

    A call that can be repeated is repeated until ``unavailable_after_ms`` after its first failure; the try that is
    under way then may still take its own ``connect_timeout_ms`` and ``request_timeout_ms``. The next rows of a scan are
    asked for at least until ``administration_timeout_ms`` was waited for them at once: where they do not come, that
    takes less than three times as long, or longer where ``unavailable_after_ms`` is (``store.hbase.patience``).
    ``ValueError`` when a limit is not positive.
    """

    connections_max: int = 8
    """Connections of one store at once, idle ones included."""
    lease_wait_ms: int = 30_000
    """How long a call waits for one of them."""
    idle_ms_max: int = 45_000
    """An idle connection that is older is discarded; keep it well below the gateway's own limit."""
    connect_timeout_ms: int = 3_000
    """How long to wait for a gateway to accept a connection; of several, each is waited for."""
    avoid_failed_ms: int = 5_000
    """For how long a gateway that failed is tried last, where several addresses are given."""
    request_timeout_ms: int = 10_000
    """How long a request waits for the first bytes of its answer, then for the others together, and once more for each
    256 KiB of them (``store.hbase.punctual``)."""
    administration_timeout_ms: int = 120_000
    """The same for making and dropping tables, which HBase takes its time for, and the most for the rows of a scan."""
    unavailable_after_ms: int = 30_000
    """How long a call that can be repeated is repeated, from its first failure on."""
    retry_wait_ms_max: int = 1_000
    """The longest pause between two tries."""
    tls: TlsFiles = field(default_factory=TlsFiles)
    """For gateways whose addresses say that TLS is spoken there."""
    kerberos: Kerberos = field(default_factory=Kerberos)
    """For those whose addresses say that they ask for Kerberos."""

    def __post_init__(self) -> None:
        _require_positive(self)


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """How much goes into one request. ``ValueError`` when a limit is not positive."""

    rows_max: int = 1_000
    """Rows of one request, read or written."""
    column_rows_max: int = 5_000
    """The same of rows that are written as columns, which cost the gateway less."""
    request_bytes_max: int = 500_000
    """Keys, columns and values of one request that writes; a single row that is larger goes alone. Larger requests are
    slower: the gateway makes an object of each cell, several times over, and has to collect them."""
    answer_bytes_wanted: int = 2**18
    """Of rows that are read: as many are asked for as make an answer of that size, and a few at first. For answers of
    4 MiB a gateway takes several times the CPU; smaller ones gain nothing (`python -m benchmarks.gateway_sizes`)."""

    def __post_init__(self) -> None:
        _require_positive(self)


def _require_positive(settings: PoolSettings | RequestLimits) -> None:
    for each in fields(settings):
        value = getattr(settings, each.name)
        if isinstance(value, int) and value < 1:
            raise ValueError(f"{each.name} must be at least 1, not {value}")
