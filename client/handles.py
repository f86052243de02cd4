"""Transactions and snapshots as values that go from process to process: to Spark tasks, and back.

A handle carries no connection and grants nothing that its holder could not do anyway; it names a transaction (its
start timestamp), what it sees (snapshot and epoch), and where the services are.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from client.errors import InvalidRequest
from client.settings import ClientSettings, parse_object
from commit_table.timestamps import TIMESTAMP_MAX
from versions import FormatNotSpoken
from versions.formats import HANDLES


class StaysInItsProcess:
    """Holds connections, and so is neither pickled nor copied: ``TypeError``, which says ``what_travels`` instead."""

    what_travels: ClassVar[str]

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot leave its process, or be copied: {self.what_travels}")


@dataclass(frozen=True, slots=True)
class SnapshotHandle:
    """A snapshot to read at: ``timestamp``, and the ``epoch`` (its first timestamp) in which it was found settled."""

    timestamp: int
    epoch: int
    settings: ClientSettings
    begun: int = 0
    """The id of the begin that gave it; 0 for a past moment, which nobody keeps."""

    def __post_init__(self) -> None:
        for timestamp in (self.epoch, self.timestamp):  # a past snapshot is older than the epoch that it is read in
            _check_order({"timestamp": timestamp})
        if self.begun != 0:
            _check_order({"snapshot": self.timestamp, "begun": self.begun})

    def to_json(self) -> str:
        """The handle as text, for a Spark option or a queue."""
        return _to_json(self)

    @classmethod
    def from_json(cls, text: str) -> SnapshotHandle:
        """Read what ``to_json`` wrote; raises ``InvalidRequest``."""
        return cls(**_parse(text, "snapshot handle", {"timestamp", "epoch", "settings", "begun"}))


@dataclass(frozen=True, slots=True)
class TransactionHandle:
    """An open transaction: its id ``start_timestamp``, what it reads (``snapshot_timestamp``, ``epoch``)."""

    start_timestamp: int
    snapshot_timestamp: int
    epoch: int
    settings: ClientSettings

    def __post_init__(self) -> None:
        _check_order({"epoch": self.epoch, "snapshot": self.snapshot_timestamp, "start": self.start_timestamp})

    def to_json(self) -> str:
        """The handle as text, for a Spark option or a queue."""
        return _to_json(self)

    @classmethod
    def from_json(cls, text: str) -> TransactionHandle:
        """Read what ``to_json`` wrote; raises ``InvalidRequest``."""
        names = {"start_timestamp", "snapshot_timestamp", "epoch", "settings"}
        return cls(**_parse(text, "transaction handle", names))


def _to_json(handle: SnapshotHandle | TransactionHandle) -> str:
    return json.dumps({"format": HANDLES.newest, **dataclasses.asdict(handle)})


def _parse(text: str, what: str, names: set[str]) -> dict[str, Any]:
    try:
        HANDLES.require_known(parse_object(text, what, None, needed={"format"})["format"])
    except FormatNotSpoken as error:
        raise InvalidRequest(f"{what}: {error}") from None
    parsed = parse_object(text, what, {"format", *names}, needed=names)
    del parsed["format"]
    return parsed | {"settings": ClientSettings.from_json(json.dumps(parsed["settings"]))}


def _check_order(timestamps: dict[str, Any]) -> None:
    """Epoch ≤ snapshot < start, all of them timestamps."""
    values = list(timestamps.values())
    whole = all(type(value) is int and 0 < value < TIMESTAMP_MAX for value in values)
    if not whole or values != sorted(values) or len(set(values[1:])) < len(values[1:]):
        named = ", ".join(f"{name} {value!r}" for name, value in timestamps.items())
        raise InvalidRequest(f"a handle's timestamps are whole numbers in the order {named}: these are not")
