"""The records that say who may serve, which timestamps are theirs, who takes part, at which level, and on which data.

All are small JSON objects with a format version. Invariant: ``parse`` gives back exactly what ``encode`` wrote, or
raises ``RecordInvalid``. A record that is not understood, or was written by a newer format, is never read as "free": it
would be a takeover by misreading.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from lease.errors import RecordInvalid
from versions import FIRST_LEVEL, FormatNotSpoken, LevelRange
from versions.formats import ZNODES
from versions.levels import FIRST_RELEASE, LEVEL_MAX

RECORD_BYTES_MAX = 16_384
TIMESTAMP_MAX = 2**63 - 1
ADDRESSES_MAX = 16
LEASE_MS_MIN = 100
LEASE_MS_MAX = 600_000

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_ADDRESS = re.compile(r"[^\s:/]{1,253}:([0-9]{1,5})|\[[0-9A-Fa-f:.%]{2,60}\]:([0-9]{1,5})")

RecordType = TypeVar("RecordType")


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """Who serves. ``nonce`` is drawn anew for every tenure, so that a holder knows its own writes again.

    ``addresses`` are ``host:port``: the first for frames, the second, where there is one, of REST. ``epoch`` is the
    first timestamp of the holder's range. ``lease_ms`` is how long the holder may believe in one write of this record:
    a standby waits by the *holder's* number, whatever its own settings. ``level`` is what every process and client has
    to work at, as the holder knew it when it wrote. Raises ``RecordInvalid`` for values that cannot be.
    """

    holder: str
    nonce: str
    addresses: tuple[str, ...]
    epoch: int
    released: bool
    lease_ms: int
    level: int = FIRST_LEVEL

    def __post_init__(self) -> None:
        check_name("holder", self.holder)
        check_name("nonce", self.nonce)
        check_addresses(self.addresses)
        _check_number("epoch", self.epoch, 1, TIMESTAMP_MAX)
        _check_number("lease_ms", self.lease_ms, LEASE_MS_MIN, LEASE_MS_MAX)
        _check_number("level", self.level, FIRST_LEVEL, LEVEL_MAX)
        _require(isinstance(self.released, bool), f"released is true or false, not {self.released!r}")

    @property
    def rest_address(self) -> str | None:
        """Where the holder's REST is; ``None``: it has none."""
        return self.addresses[1] if len(self.addresses) > 1 else None

    def encode(self) -> bytes:
        """The record as it is stored."""
        return _encode(asdict(self))

    @classmethod
    def parse(cls, data: bytes) -> LeaseRecord:
        """The record from stored bytes. Raises ``RecordInvalid`` with what is wrong and what to do."""
        return _parse("lease", data, _LEASE_FIELDS, _lease_from)


@dataclass(frozen=True, slots=True)
class EpochRecord:
    """The range of timestamps ``epoch <= timestamp < ceiling`` that belongs to one tenure.

    ``durable``: every commit at or below it is in the commit table, as of when the record was written. So whoever
    reads the record may read the past up to there, with no oracle alive.
    """

    epoch: int
    ceiling: int
    durable: int

    def __post_init__(self) -> None:
        _check_number("epoch", self.epoch, 1, TIMESTAMP_MAX)
        _check_number("ceiling", self.ceiling, self.epoch + 1, TIMESTAMP_MAX)
        _check_number("durable", self.durable, self.epoch, self.ceiling - 1)

    def encode(self) -> bytes:
        """The record as it is stored."""
        return _encode(asdict(self))

    @classmethod
    def parse(cls, data: bytes) -> EpochRecord:
        """The record from stored bytes. Raises ``RecordInvalid`` with what is wrong and what to do."""
        return _parse("epoch", data, _EPOCH_FIELDS, lambda fields: EpochRecord(**fields))


@dataclass(frozen=True, slots=True)
class LevelRecord:
    """The installation's level: ``level`` may be written, ``required`` has to be understood by whoever takes part.

    They differ while the level is being raised: first everybody has to understand, then somebody may write.
    """

    level: int
    required: int

    def __post_init__(self) -> None:
        _check_number("level", self.level, FIRST_LEVEL, LEVEL_MAX)
        _check_number("required", self.required, self.level, LEVEL_MAX)

    def encode(self) -> bytes:
        """The record as it is stored."""
        return _encode(asdict(self))

    @classmethod
    def parse(cls, data: bytes) -> LevelRecord:
        """The record from stored bytes. Raises ``RecordInvalid`` with what is wrong and what to do."""
        return _parse("level", data, _LEVEL_FIELDS, lambda fields: LevelRecord(**fields))


@dataclass(frozen=True, slots=True)
class DataRecord:
    """Which data are the installation's: ``identity`` is the name that they bear themselves."""

    identity: str

    def __post_init__(self) -> None:
        check_name("identity", self.identity)

    def encode(self) -> bytes:
        """The record as it is stored."""
        return _encode(asdict(self))

    @classmethod
    def parse(cls, data: bytes) -> DataRecord:
        """The record from stored bytes. Raises ``RecordInvalid`` with what is wrong and what to do."""
        return _parse("data", data, _DATA_FIELDS, lambda fields: DataRecord(**fields))


@dataclass(frozen=True, slots=True)
class Member:
    """A process that takes part: holder name, role (``primary``, ``standby``, …), address, levels it works at."""

    holder: str
    role: str
    address: str
    levels: LevelRange = FIRST_RELEASE

    def __post_init__(self) -> None:
        check_name("holder", self.holder)
        check_name("role", self.role)
        check_addresses((self.address,))

    def encode(self) -> bytes:
        """The record as it is stored."""
        return _encode({**asdict(self), "levels": [self.levels.lowest, self.levels.highest]})

    @classmethod
    def parse(cls, data: bytes) -> Member:
        """The record from stored bytes. Raises ``RecordInvalid`` with what is wrong and what to do."""
        return _parse("member", data, _MEMBER_FIELDS, _member_from)


_LEASE_FIELDS = frozenset({"holder", "nonce", "addresses", "epoch", "released", "lease_ms", "level"})
_EPOCH_FIELDS = frozenset({"epoch", "ceiling", "durable"})
_LEVEL_FIELDS = frozenset({"level", "required"})
_DATA_FIELDS = frozenset({"identity"})
_MEMBER_FIELDS = frozenset({"holder", "role", "address", "levels"})


def check_name(what: str, name: object) -> None:
    """Raise ``RecordInvalid`` unless ``name`` can stand in a record and in a znode's path."""
    valid = isinstance(name, str) and _NAME.fullmatch(name) is not None
    _require(valid, f"{what} is 1 to 100 letters, digits, '.', '_' or '-', not {name!r}")


def check_addresses(addresses: object) -> None:
    """Raise ``RecordInvalid`` unless ``addresses`` is a tuple of 1 to 16 ``host:port``."""
    few = isinstance(addresses, tuple) and 1 <= len(addresses) <= ADDRESSES_MAX
    valid = isinstance(addresses, tuple) and few and all(_is_address(address) for address in addresses)
    _require(valid, f"addresses are 1 to {ADDRESSES_MAX} host:port, not {addresses!r}")


def _is_address(address: object) -> bool:
    match = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    return match is not None and 1 <= int(match[1] or match[2]) <= 65_535


def _check_number(what: str, number: object, least: int, most: int) -> None:
    valid = type(number) is int and least <= number <= most
    _require(valid, f"{what} lies in {least}…{most}, not {number!r}")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise RecordInvalid(message)


def _encode(fields: Mapping[str, Any]) -> bytes:
    data = json.dumps({"format": ZNODES.newest, **fields}, sort_keys=True, separators=(",", ":")).encode()
    _require(len(data) <= RECORD_BYTES_MAX, f"a record has at most {RECORD_BYTES_MAX} bytes, not {len(data)}")
    return data


def _lease_from(fields: dict[str, Any]) -> LeaseRecord:
    addresses = fields["addresses"]
    _require(isinstance(addresses, list), f"addresses are a list, not {addresses!r}")
    return LeaseRecord(**{**fields, "addresses": tuple(addresses)})


def _member_from(fields: dict[str, Any]) -> Member:
    levels = fields["levels"]
    _require(isinstance(levels, list) and len(levels) == 2, f"levels are the lowest and the highest, not {levels!r}")
    try:
        return Member(**{**fields, "levels": LevelRange(*levels)})
    except (TypeError, ValueError) as error:
        raise RecordInvalid(str(error)) from None


def _parse(kind: str, data: bytes, names: frozenset[str], build: Callable[[dict[str, Any]], RecordType]) -> RecordType:
    try:
        return build(_fields(data, names))
    except RecordInvalid as error:
        raise RecordInvalid(f"the stored {kind} record cannot be used: {error}") from None


def _fields(data: bytes, names: frozenset[str]) -> dict[str, Any]:
    _require(len(data) <= RECORD_BYTES_MAX, f"it has {len(data)} bytes, more than {RECORD_BYTES_MAX}")
    try:
        fields: dict[str, Any] = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        raise RecordInvalid(f"it is not JSON: {data[:80]!r}; is this znode root used by another program?") from None
    _require(isinstance(fields, dict) and "format" in fields, f"it has no format version: {data[:80]!r}")
    try:
        ZNODES.require_known(fields.pop("format"))
    except FormatNotSpoken as error:
        raise RecordInvalid(str(error)) from None
    _require(fields.keys() == names, f"its fields are {sorted(fields)}, not {sorted(names)}")
    return fields
