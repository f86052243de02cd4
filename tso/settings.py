"""Everything about an oracle that can be chosen, checked once, with units in the names.

Defaults suit a small machine (two cores, a few GiB). A combination that cannot work is refused with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from access.server_files import ServerFiles
from commit_table.timestamps import TIMESTAMPS_PER_MILLISECOND
from configuration import Contradiction, Section, setting, settings_of
from configuration.defaults import DEFAULT_ROOT
from configuration.reasons import CONNECTION, MEMORY, THREAD, WAIT
from configuration.setting import first_problem
from lease import InvalidLeaseSettings, LeaseSettings, ZnodePaths
from lease.records import check_addresses, check_name
from wire import FRAME_BYTES_MAX, HEADER_BYTES


class InvalidSettings(ValueError):
    """A setting that cannot work; the text says which, why, and what to do."""


_ANSWER = f"the answer to one request must fit {FRAME_BYTES_MAX} bytes"
_HOST_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?")
PORT_MAX = 65_535
_EVERYWHERE = ("0.0.0.0", "::")
_ANSWER_TRANSACTIONS_MAX = (FRAME_BYTES_MAX - HEADER_BYTES - 8) // 9


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what one oracle process takes on."""

    begin_count_max: int = setting(
        10_000,
        "transactions",
        "Transactions that one request may begin.",
        least=1,
        most=10_000_000,
        because="one begin would take the timestamps of many milliseconds",
    )
    begins_per_ms_max: int = setting(
        131_072,
        "transactions",
        "Rate of begins; half of the 2**18 timestamps of a millisecond, so that timestamps keep behind the clock.",
        least=1,
        most=TIMESTAMPS_PER_MILLISECOND,
        because="a millisecond holds no more timestamps",
    )
    begin_burst_ms: int = setting(
        20,
        "ms",
        "Begins may run ahead of their rate by as much as this time would allow.",
        least=1,
        most=10_000,
        because="timestamps would run ahead of the clock by as much",
    )
    conflict_map_entries_max: int = setting(
        4_000_000,
        "cells",
        "Cells remembered for conflict detection, at most 24 bytes each: 96 MB when the map is full.",
        least=1,
        most=500_000_000,
        because=MEMORY,
    )
    large_commit_cells_max: int = setting(
        16_000_000,
        "cells",
        "Cells of write sets that came in parts, over all that are remembered, 10 bytes each: 160 MB when "
        "they are used. One commit may have as many.",
        least=1,
        most=1_000_000_000,
        because=MEMORY,
    )
    large_commit_idle_ms_max: int = setting(
        5_000,
        "ms",
        "A write set of which no more parts come is given up after that long: until then others conflict with it.",
        least=1,
        most=600_000,
        because="others conflict for so long with a transaction that nobody goes on with",
    )
    remembered_decisions_max: int = setting(
        1_000_000,
        "transactions",
        "Decided transactions remembered, so that a repeated commit gets the same answer, at most 24 bytes each.",
        least=1,
        most=500_000_000,
        because=MEMORY,
    )
    commit_share_max: float = setting(
        0.5,
        "share",
        "The share of the conflict map that one commit's write set may fill; a larger one is refused as TOO_LARGE, and "
        "so is one that came in parts and has more guards than that.",
        least=0.000001,
        most=1,
        because="it is a share",
    )
    remembered_aborts_max: int = setting(
        100_000,
        "transactions",
        "Aborted transactions kept so that a late commit of theirs is refused.",
        least=1,
        most=100_000_000,
        because=MEMORY,
    )
    transaction_life_ms: int = setting(
        3_600_000,
        "ms",
        "How long a transaction lives without a heartbeat; then it is given up. Clients send them by "
        "themselves, but a Spark job with a transaction of its own only while its tasks write: it may shuffle "
        "for so long before.",
        least=1,
        most=604_800_000,
        because="a transaction that nobody works on would hold back the vacuum for a week",
    )
    heartbeat_transactions_max: int = setting(
        100_000,
        "transactions",
        "Transactions that live by heartbeats; more are told `Overloaded`.",
        least=1,
        most=10_000_000,
        because=MEMORY,
    )
    transactions_in_flight_max: int = setting(
        65_536,
        "transactions",
        "Commits decided and not yet answered; more are told `Overloaded`.",
        least=1,
        most=_ANSWER_TRANSACTIONS_MAX,
        because=_ANSWER,
    )
    write_batch_commits_max: int = setting(
        8_192,
        "transactions",
        "Commits in one write to the commit table.",
        least=1,
        most=1_000_000,
        because="one write has to end well before the lease does",
    )
    commit_writers: int = setting(
        2,
        "writes",
        "Writes to the commit table under way at once.",
        least=1,
        most=64,
        because=THREAD,
    )
    awake_us_max: int = setting(
        1_000,
        "µs",
        "How long the primary looks for more work before it sleeps, after each work: as long as a write to HBase "
        "takes, since waking a halted core delays a single caller as much as the write does. It costs up to as much "
        "of an idle core for each request, and gives way to whoever needs that core; 0: it sleeps at once, as "
        "it should under a quota of CPU time.",
        least=0,
        most=1_000_000,
        because="a core would be busy with waiting for that long",
    )
    persist_retry_ms_max: int = setting(
        3_000,
        "ms",
        "How long a failing write is repeated, while the lease is held, before the primary gives up its "
        "lease: a standby may have a way to HBase where this one has none, and what was under way is not lost "
        "by it. Of several gateways each is tried once, however long that takes.",
        least=1,
        most=600_000,
        because=WAIT,
    )
    lookup_threads: int = setting(
        2,
        "threads",
        "Threads that ask and fence the commit table for aborts and outcomes.",
        least=1,
        most=64,
        because=THREAD,
    )
    lookup_ids_max: int = setting(
        1_000,
        "transactions",
        "Transactions in one request to abort or for outcomes.",
        least=1,
        most=_ANSWER_TRANSACTIONS_MAX,
        because=_ANSWER,
    )
    lookups_pending_max: int = setting(
        10_000,
        "transactions",
        "Transactions waiting for such a thread; more are told `Overloaded`.",
        least=1,
        most=10_000_000,
        because=MEMORY,
    )
    retry_after_ms: int = setting(
        20,
        "ms",
        "What an `Overloaded` answer asks a client to wait.",
        least=1,
        most=60_000,
        because="a client that waits for longer misses the oracle when it is free again",
    )
    connections_max: int = setting(
        1_000,
        "connections",
        "Connections at once.",
        least=1,
        most=100_000,
        because=CONNECTION,
    )
    connection_requests_max: int = setting(
        4_096,
        "requests",
        "Requests of one connection that are not answered yet; more are told `Overloaded`.",
        least=1,
        most=1_000_000,
        because=MEMORY,
    )
    connection_idle_ms_min: int = setting(
        10_000,
        "ms",
        "When there are too many connections, one that has been idle for so long is closed to make room.",
        least=1,
        most=86_400_000,
        because="connections would never make room for others",
    )
    connection_write_bytes_max: int = setting(
        4 * 2**20,
        "bytes",
        "Answers that one connection leaves unread before it is dropped.",
        least=1,
        most=2**30,
        because=MEMORY,
    )
    frame_bytes_max: int = setting(
        FRAME_BYTES_MAX,
        "bytes",
        "The largest frame that is read.",
        least=1,
        most=FRAME_BYTES_MAX,
        because="the protocol has no longer frames",
    )
    receive_bytes_max: int = setting(
        256 * 2**20,
        "bytes",
        "Bytes of frames that are not whole yet, over all connections; beyond that, who holds most is dropped.",
        least=1,
        most=2**36,
        because=MEMORY,
    )
    partial_frame_ms_max: int = setting(
        30_000,
        "ms",
        "How long a connection may take to complete a frame that it has begun.",
        least=1,
        most=3_600_000,
        because="a frame that takes so long is never completed",
    )
    hello_ms_max: int = setting(
        5_000,
        "ms",
        "How long a connection may take to say hello.",
        least=1,
        most=60_000,
        because=WAIT,
    )
    linger_ms_max: int = setting(
        1_000,
        "ms",
        "How long a connection that is being closed may take to read its last answer.",
        least=1,
        most=60_000,
        because=WAIT,
    )
    drain_ms_max: int = setting(
        5_000,
        "ms",
        "How long a process that was asked to stop waits for what is under way.",
        least=1,
        most=600_000,
        because=WAIT,
    )

    def __post_init__(self) -> None:
        problem = first_problem(LIMITS, asdict(self))
        if problem is not None:
            raise InvalidSettings(problem)

    @property
    def commit_cells_max(self) -> int:
        """Cells that one commit may enter."""
        return int(self.conflict_map_entries_max * self.commit_share_max)


def _contradictions(limits: Mapping[str, Any]) -> Iterator[Contradiction]:
    for names, holds, reason in _RULES:
        if not holds(*(limits[name] for name in names)):
            yield Contradiction(names, reason)


_RULES: tuple[tuple[tuple[str, ...], Callable[..., bool], str], ...] = (
    (
        ("begin_count_max", "begins_per_ms_max", "begin_burst_ms"),
        lambda count, per_ms, burst_ms: count <= per_ms * burst_ms,
        "begin_count_max is more than begins_per_ms_max × begin_burst_ms: such a begin could never be granted",
    ),
    (
        ("conflict_map_entries_max", "commit_share_max"),
        lambda entries, share: entries * share >= 1,
        "conflict_map_entries_max × commit_share_max leaves no room for one cell: raise them",
    ),
    (
        ("transactions_in_flight_max", "remembered_decisions_max"),
        lambda in_flight, remembered: in_flight <= remembered,
        "transactions_in_flight_max is more than remembered_decisions_max: a decision could be forgotten before it was "
        "told",
    ),
    (
        ("lookup_ids_max", "lookups_pending_max"),
        lambda ids, pending: ids <= pending,
        "lookup_ids_max is more than lookups_pending_max: such a request could never be taken",
    ),
    (
        ("frame_bytes_max", "receive_bytes_max"),
        lambda frame, receive: HEADER_BYTES < frame <= receive,
        f"frame_bytes_max must be over {HEADER_BYTES} (the header) and not over receive_bytes_max",
    ),
)


LIMITS = Section(
    "oracle.limits",
    "What one oracle process takes on: `--limit NAME=VALUE`, as often as needed, or `PYTHIA_LIMITS` with "
    "`NAME=VALUE …`.",
    settings_of(Limits),
    _contradictions,
    many_environment="PYTHIA_LIMITS",
)


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
    tokens_file: str = ""
    """Who may do what; empty: everybody may do everything."""
    tls: ServerFiles | None = None
    root: str = DEFAULT_ROOT
    """The znode under which the installation's nodes lie; its tables are named after it."""
    lease: LeaseSettings = field(default_factory=LeaseSettings)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not 0 <= self.listen_port <= PORT_MAX:
            raise InvalidSettings(f"a port lies in 0…{PORT_MAX}, not {self.listen_port}")
        try:
            check_name("name", self.name)
            check_addresses((self.advertise or "host:1", self.rest_advertise or "host:1"))
            ZnodePaths(self.root)
        except ValueError as error:
            raise InvalidSettings(str(error)) from error
        if self.advertise is None and self.listen_host in _EVERYWHERE:
            raise InvalidSettings(
                f"listening on every interface ({self.listen_host}) says nothing about how clients reach this process: "
                "name an address to advertise"
            )


def parse_listen(text: str) -> tuple[str, int]:
    """Host and port of ``host:port``, ``[v6 address]:port`` included. Raises ``InvalidSettings``."""
    named, _, port = text.rpartition(":")
    host = named.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit():
        raise InvalidSettings(f"an address to listen on is host:port, such as 127.0.0.1:5480, not {text!r}")
    if len(port) > len(str(PORT_MAX)) or int(port) > PORT_MAX:
        raise InvalidSettings(f"a port lies in 0…{PORT_MAX}, not {port}")
    try:
        host.encode("idna")  # as whoever looks it up will, whose error names neither the host nor what to do
    except UnicodeError as error:
        raise InvalidSettings(f"{host!r} cannot be the name of a host: {error}") from error
    return host, int(port)


def listens_everywhere(text: str) -> bool:
    """Whether an address to listen on is on every interface."""
    return parse_listen(text)[0] in _EVERYWHERE


def names_of(text: str) -> tuple[str, ...]:
    """Host names with commas between, without ports. Raises ``InvalidSettings``."""
    names = tuple(name.strip() for name in text.split(",")) if text else ()
    for name in names:
        if _HOST_NAME.fullmatch(name) is None:
            raise InvalidSettings(f"host names are given as oracle.example.org, with commas between, not as {name!r}")
    return names


def lease_settings(lease_ms: int, renewals_per_lease: int) -> LeaseSettings:
    """The lease's settings. Raises ``InvalidSettings`` with the lease room's reason."""
    try:
        return LeaseSettings(lease_ms=lease_ms, renewals_per_lease=renewals_per_lease)
    except InvalidLeaseSettings as error:
        raise InvalidSettings(str(error)) from error
