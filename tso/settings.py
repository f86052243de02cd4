"""Everything about an oracle that can be chosen, checked once, with units in the names.

Defaults suit a small machine (two cores, a few GiB). A combination that cannot work is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from commit_table.timestamps import TIMESTAMPS_PER_MILLISECOND
from lease import InvalidLeaseSettings, LeaseSettings, ZnodePaths
from lease.paths import DEFAULT_ROOT
from lease.records import check_addresses, check_name
from wire import FRAME_BYTES_MAX, HEADER_BYTES


class InvalidSettings(ValueError):
    """A setting that cannot work; the text says which, why, and what to do."""


_MEMORY = "more would not fit this process's memory"
_THREADS = "each is a thread, and a connection to the gateway"
_ANSWER = f"the answer to one request must fit {FRAME_BYTES_MAX} bytes"
_WAIT = "whoever waits for that has long given up"
_ANSWER_TRANSACTIONS_MAX = (FRAME_BYTES_MAX - HEADER_BYTES - 8) // 9

_LARGEST: Mapping[str, tuple[float, str]] = {
    "begin_count_max": (10_000_000, "one begin would take the timestamps of many milliseconds"),
    "begins_per_ms_max": (TIMESTAMPS_PER_MILLISECOND, "a millisecond holds no more timestamps"),
    "begin_burst_ms": (10_000, "timestamps would run ahead of the clock by as much"),
    "conflict_map_entries_max": (500_000_000, _MEMORY),
    "commit_share_max": (1, "it is a share"),
    "large_commit_cells_max": (1_000_000_000, _MEMORY),
    "large_commit_idle_ms_max": (600_000, "others conflict for so long with a transaction that nobody goes on with"),
    "remembered_decisions_max": (500_000_000, _MEMORY),
    "remembered_aborts_max": (100_000_000, _MEMORY),
    "transaction_life_ms": (604_800_000, "a transaction that nobody works on would hold back the vacuum for a week"),
    "heartbeat_transactions_max": (10_000_000, _MEMORY),
    "transactions_in_flight_max": (_ANSWER_TRANSACTIONS_MAX, _ANSWER),
    "write_batch_commits_max": (1_000_000, "one write has to end well before the lease does"),
    "commit_writers": (64, _THREADS),
    "persist_retry_ms_max": (600_000, _WAIT),
    "lookup_threads": (64, _THREADS),
    "lookup_ids_max": (_ANSWER_TRANSACTIONS_MAX, _ANSWER),
    "lookups_pending_max": (10_000_000, _MEMORY),
    "retry_after_ms": (60_000, "a client that waits for longer misses the oracle when it is free again"),
    "connections_max": (100_000, "each needs a file descriptor and memory"),
    "connection_requests_max": (1_000_000, _MEMORY),
    "connection_idle_ms_min": (86_400_000, "connections would never make room for others"),
    "connection_write_bytes_max": (2**30, _MEMORY),
    "frame_bytes_max": (FRAME_BYTES_MAX, "the protocol has no longer frames"),
    "receive_bytes_max": (2**36, _MEMORY),
    "partial_frame_ms_max": (3_600_000, "a frame that takes so long is never completed"),
    "linger_ms_max": (60_000, _WAIT),
    "drain_ms_max": (600_000, _WAIT),
}
"""Beyond these a limit would bound nothing: each with the reason that its refusal gives."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what one oracle process takes on."""

    begin_count_max: int = 10_000
    """Transactions that one request may begin."""
    begins_per_ms_max: int = 131_072
    """Rate of begins; half of the 2**18 timestamps of a millisecond, so that timestamps keep behind the clock."""
    begin_burst_ms: int = 20
    """Begins may run ahead of their rate by as much as this time would allow."""
    conflict_map_entries_max: int = 4_000_000
    """Cells remembered for conflict detection, at most 24 bytes each: 96 MB when the map is full."""
    large_commit_cells_max: int = 16_000_000
    """Cells of write sets that came in parts, over all that are remembered, 10 bytes each: 160 MB when they are used.
    One commit may have as many."""
    large_commit_idle_ms_max: int = 5_000
    """A write set of which no more parts come is given up after that long: until then others conflict with it."""
    remembered_decisions_max: int = 1_000_000
    """Decided transactions remembered, so that a repeated commit gets the same answer, at most 24 bytes each."""
    commit_share_max: float = 0.5
    """The share of the conflict map that one commit's write set may fill; a larger one is refused as TOO_LARGE."""
    remembered_aborts_max: int = 100_000
    """Aborted transactions kept so that a late commit of theirs is refused."""
    transaction_life_ms: int = 3_600_000
    """How long a transaction lives without a heartbeat; then it is given up. Clients send them by themselves, but a
    Spark job with a transaction of its own only while its tasks write: it may shuffle for so long before."""
    heartbeat_transactions_max: int = 100_000
    """Transactions that live by heartbeats; more are told `Overloaded`."""
    transactions_in_flight_max: int = 65_536
    """Commits decided and not yet answered; more are told `Overloaded`."""
    write_batch_commits_max: int = 8_192
    """Commits in one write to the commit table."""
    commit_writers: int = 2
    """Writes to the commit table under way at once."""
    persist_retry_ms_max: int = 3_000
    """How long a failing write is repeated, while the lease is held, before the primary gives up its lease: a standby
    may have a way to HBase where this one has none, and what was under way is not lost by it."""
    lookup_threads: int = 2
    """Threads that ask and fence the commit table for aborts and outcomes."""
    lookup_ids_max: int = 1_000
    """Transactions in one request to abort or for outcomes."""
    lookups_pending_max: int = 10_000
    """Transactions waiting for such a thread; more are told `Overloaded`."""
    retry_after_ms: int = 20
    """What an `Overloaded` answer asks a client to wait."""
    connections_max: int = 1_000
    """Connections at once."""
    connection_requests_max: int = 4_096
    """Requests of one connection that are not answered yet; more are told `Overloaded`."""
    connection_idle_ms_min: int = 10_000
    """When there are too many connections, one that has been idle for so long is closed to make room."""
    connection_write_bytes_max: int = 4 * 2**20
    """Answers that one connection leaves unread before it is dropped."""
    frame_bytes_max: int = FRAME_BYTES_MAX
    """The largest frame that is read."""
    receive_bytes_max: int = 256 * 2**20
    """Bytes of frames that are not whole yet, over all connections; beyond that, who holds most is dropped."""
    partial_frame_ms_max: int = 30_000
    """How long a connection may take to complete a frame that it has begun."""
    linger_ms_max: int = 1_000
    """How long a connection that is being closed may take to read its last answer."""
    drain_ms_max: int = 5_000
    """How long a process that was asked to stop waits for what is under way."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            value, (largest, reason) = getattr(self, limit.name), _LARGEST[limit.name]
            self._check(value > 0, f"{limit.name} must be larger than 0, not {value}")
            self._check(value <= largest, f"{limit.name} must be {largest} at most, not {value}: {reason}")
        self._check(
            self.begin_count_max <= self.begins_per_ms_max * self.begin_burst_ms,
            "begin_count_max is more than begins_per_ms_max × begin_burst_ms: such a begin could never be granted",
        )
        self._check(
            self.commit_cells_max >= 1,
            "conflict_map_entries_max × commit_share_max leaves no room for one cell: raise them",
        )
        self._check(
            self.transactions_in_flight_max <= self.remembered_decisions_max,
            "transactions_in_flight_max is more than remembered_decisions_max: a decision could be forgotten before it "
            "was told",
        )
        self._check(
            self.lookup_ids_max <= self.lookups_pending_max,
            "lookup_ids_max is more than lookups_pending_max: such a request could never be taken",
        )
        self._check(
            HEADER_BYTES < self.frame_bytes_max <= self.receive_bytes_max,
            f"frame_bytes_max must be over {HEADER_BYTES} (the header) and not over receive_bytes_max",
        )

    @staticmethod
    def _check(holds: bool, reason: str) -> None:
        if not holds:
            raise InvalidSettings(reason)

    @property
    def commit_cells_max(self) -> int:
        """Cells that one commit may enter."""
        return int(self.conflict_map_entries_max * self.commit_share_max)

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Limits:
        """The defaults, changed by texts such as ``connections_max=50``. Raises ``InvalidSettings``."""
        types = {limit.name: float if limit.type == "float" else int for limit in fields(cls)}
        chosen: dict[str, float] = {}
        for text in texts:
            name, _, value = (part.strip() for part in text.partition("="))
            if name not in types:
                raise InvalidSettings(f"there is no limit {name!r}; there are: {', '.join(types)}")
            try:
                chosen[name] = types[name](value)
            except ValueError:
                raise InvalidSettings(f"limit {name} needs a number, not {value!r}: write {name}=…") from None
        return cls(**chosen)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """One oracle process. Raises ``InvalidSettings``."""

    name: str
    """Of this process, unique in the installation: letters, digits, '.', '_' and '-'."""
    zookeeper: str
    """``host:port``, several with commas."""
    thrift: str
    """``host:port`` of HBase's Thrift gateway."""
    listen_host: str = "127.0.0.1"
    listen_port: int = 5480
    """0: the system chooses."""
    advertise: str | None = None
    """``host:port`` that clients are told; ``None``: the address listened on."""
    rest_advertise: str | None = None
    """``host:port`` of the REST process beside this one, for the lease; ``None``: there is none."""
    root: str = DEFAULT_ROOT
    """The znode under which the installation's nodes lie; its tables are named after it."""
    lease: LeaseSettings = field(default_factory=LeaseSettings)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not 0 <= self.listen_port <= 65_535:
            raise InvalidSettings(f"a port lies in 0…65535, not {self.listen_port}")
        try:
            check_name("name", self.name)
            check_addresses((self.advertise or "host:1", self.rest_advertise or "host:1"))
            ZnodePaths(self.root)
        except ValueError as error:
            raise InvalidSettings(str(error)) from error
        if self.advertise is None and self.listen_host in ("", "0.0.0.0", "::"):
            raise InvalidSettings(
                f"listening on every interface ({self.listen_host}) says nothing about how clients reach this process: "
                "name an address to advertise"
            )


def parse_listen(text: str) -> tuple[str, int]:
    """Host and port of ``host:port``, ``[v6 address]:port`` included. Raises ``InvalidSettings``."""
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit():
        raise InvalidSettings(f"an address to listen on is host:port, such as 127.0.0.1:5480, not {text!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def lease_settings(lease_ms: int, renewals_per_lease: int) -> LeaseSettings:
    """The lease's settings. Raises ``InvalidSettings`` with the lease room's reason."""
    try:
        return LeaseSettings(lease_ms=lease_ms, renewals_per_lease=renewals_per_lease)
    except InvalidLeaseSettings as error:
        raise InvalidSettings(str(error)) from error
