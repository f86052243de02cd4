"""Where the services are, and the limits a client keeps; one frozen object that travels to Spark tasks as it is."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from client.errors import InvalidRequest
from lease import ZnodePaths

_LIMITS = {
    "request_timeout_ms": (1, 3_600_000),
    "deadline_ms": (1, 86_400_000),
    "transaction_bytes_max": (1, 2**40),
    "outcome_cache_entries_max": (1, 2**32),
    "heartbeat_interval_ms": (10, 86_400_000),
    "oracle_requests_max": (1, 10_000_000),
    "store_connections_max": (1, 10_000),
    "shadow_writers_max": (1, 64),
}


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """How to reach one installation of Pythia.

    ``zookeeper``, ``thrift``: ``"host:port"``, or several, separated by commas. ``oracle``: ``"host:port"`` of
    an oracle that serves alone, in place of ``zookeeper``, which is ``""`` then. ``root``: the znode under which the
    installation lives. ``request_timeout_ms``: how long one request may take before another way is tried.
    ``deadline_ms``: how long a call may wait for the oracle, failovers included; reading and writing cells has the
    same limit once more, from the first failure on. ``transaction_bytes_max``: what one
    transaction may hold in this process's memory before it commits. ``outcome_cache_entries_max``: transactions whose
    commit timestamps are remembered, about 150 bytes each. ``heartbeat_interval_ms``: how often the oracle is told
    which transactions are still in use; well below its ``transaction_life_ms``. ``oracle_requests_max``: requests of
    this process that may wait to be sent to the oracle, over all its threads and tasks. ``heal``: whether readers write
    missing shadow cells. ``shadow_writers_max``: threads that write the shadow cells of one bulk write.
    ``defer_shadow_cells``: whether a commit leaves those of its bulk writes to ``manager.finish_bulk_writes`` or a
    vacuum; readers are right meanwhile, by the commit table.

    Raises ``InvalidRequest`` for settings that cannot work.
    """

    zookeeper: str
    thrift: str
    root: str = "/pythia"
    request_timeout_ms: int = 5_000
    deadline_ms: int = 30_000
    transaction_bytes_max: int = 256 * 2**20
    outcome_cache_entries_max: int = 100_000
    heartbeat_interval_ms: int = 15_000
    oracle_requests_max: int = 100_000
    store_connections_max: int = 16
    heal: bool = True
    shadow_writers_max: int = 4
    defer_shadow_cells: bool = False
    oracle: str = ""

    def __post_init__(self) -> None:
        for name in ("zookeeper", "thrift", "root", "oracle"):
            if not isinstance(getattr(self, name), str):
                raise InvalidRequest(f"{name} is text, not {getattr(self, name)!r}")
        if bool(self.oracle) == bool(self.zookeeper):
            raise InvalidRequest("either zookeeper or oracle (of an oracle that is alone) says where the oracle is")
        for address in (*(self.oracle or self.zookeeper).split(","), *self.thrift.split(",")):
            _check_address(address)
        try:
            ZnodePaths(self.root)
        except ValueError as error:
            raise InvalidRequest(str(error)) from error
        for name, (least, most) in _LIMITS.items():
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                raise InvalidRequest(f"{name} is a whole number from {least:,} to {most:,}, not {value!r}")
        for name in ("heal", "defer_shadow_cells"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidRequest(f"{name} is true or false, not {getattr(self, name)!r}")

    def to_json(self) -> str:
        """The settings as text; ``from_json`` reads it back."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> ClientSettings:
        """Read what ``to_json`` wrote. Raises ``InvalidRequest`` where that is not what it is given."""
        names = {field.name for field in dataclasses.fields(cls)}
        return cls(**parse_object(text, "client settings", names, needed={"zookeeper", "thrift"}))


def parse_object(text: str, what: str, names: set[str], *, needed: set[str]) -> dict[str, Any]:
    """A JSON object with the ``needed`` names and no others than ``names``.

    Raises ``InvalidRequest`` that says what it should have been.
    """
    try:
        parsed = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"{what}: not the JSON text that to_json() gives: {error}") from error
    if not isinstance(parsed, dict):
        raise InvalidRequest(f"{what}: a JSON object is needed, not {type(parsed).__name__}")
    unknown, missing = sorted(set(parsed) - names), sorted(needed - set(parsed))
    if unknown or missing:
        wrong = [f"unknown {', '.join(unknown)}"] * bool(unknown) + [f"missing {', '.join(missing)}"] * bool(missing)
        raise InvalidRequest(f"{what}: {'; '.join(wrong)}; known are {', '.join(sorted(names))}")
    return parsed


def _check_address(address: str) -> None:
    host, colon, port = address.strip().rpartition(":")
    numeric = port.isascii() and port.isdigit() and len(port) <= len("65535")
    if not host or "," in host or not colon or not numeric or not 0 < int(port) < 65_536:
        raise InvalidRequest(f"an address is 'host:port', not {address!r}")
