"""The options of the data source: which there are, and where one comes from that a job does not give. Pure.

Spark hands a source the options of ``.option(...)`` and of ``WITH (...)``, with names in lower case, but not those of a
catalog table; and to ``CREATE TABLE`` without columns it hands names of its own, so give the columns there. Hence the
connection has three places, of which the first one that names it wins: the option, the Spark configuration
(``spark.pythia.zookeeper``, read when the source is registered), the environment (``PYTHIA_ZOOKEEPER``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from client.handles import SnapshotHandle, TransactionHandle
from client.settings import ClientSettings
from client.spark.errors import InvalidOption

CONNECTION_OPTIONS: Final = ("zookeeper", "thrift", "root")
_JOB_OPTIONS: Final = ("table", "transaction", "snapshot", "columns", "min_partitions", "batch_rows")
KNOWN_OPTIONS: Final = (*_JOB_OPTIONS, *CONNECTION_OPTIONS)
_SPARKS_OPTIONS: Final = ("checkpointlocation", "queryname")
"""What Spark itself is told by the options of a streaming write, and hands on."""

MIN_PARTITIONS: Final = 4
BATCH_ROWS: Final = 2_000
_MIN_PARTITIONS_MAX: Final = 10_000
_BATCH_ROWS_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a job asked for. ``transaction`` and ``snapshot`` exclude each other; with neither, the job has its own.

    ``columns``: the columns to read, ``None`` for all. ``min_partitions``: into how many parts a read is split at
    least, if the keys allow it. ``batch_rows``: rows that are encoded or decoded, and held in memory, at a time.
    """

    settings: ClientSettings
    table: str
    transaction: TransactionHandle | None = None
    snapshot: SnapshotHandle | None = None
    columns: tuple[str, ...] | None = None
    min_partitions: int = MIN_PARTITIONS
    batch_rows: int = BATCH_ROWS


def parse(options: Mapping[str, str], connection: Mapping[str, str]) -> SourceOptions:
    """Read a job's options. ``connection``: the connection's settings by name, for those that the job does not give.

    Raises ``InvalidOption``, or ``InvalidRequest`` for a handle that cannot be read.
    """
    given = {name.lower(): value for name, value in options.items()}
    unknown = sorted(set(given) - {*KNOWN_OPTIONS, *_SPARKS_OPTIONS})
    if unknown:
        raise InvalidOption(f"unknown option {', '.join(unknown)}; the options are {', '.join(KNOWN_OPTIONS)}")
    if not given.get("table"):
        raise InvalidOption(
            "the option 'table' is missing: use .option('table', ...), a temporary view with OPTIONS, or, since Spark "
            "does not pass the options of a catalog table on, SELECT ... FROM t WITH (table = '...')"
        )
    if "transaction" in given and "snapshot" in given:
        raise InvalidOption("give either 'transaction' or 'snapshot': a transaction has a snapshot of its own")
    transaction = TransactionHandle.from_json(given["transaction"]) if "transaction" in given else None
    snapshot = SnapshotHandle.from_json(given["snapshot"]) if "snapshot" in given else None
    handle = transaction or snapshot
    return SourceOptions(
        settings=_settings(given, connection) if handle is None else _settings_of(handle, given),
        table=given["table"],
        transaction=transaction,
        snapshot=snapshot,
        columns=_columns(given["columns"]) if "columns" in given else None,
        min_partitions=_whole_number(given, "min_partitions", MIN_PARTITIONS, _MIN_PARTITIONS_MAX),
        batch_rows=_whole_number(given, "batch_rows", BATCH_ROWS, _BATCH_ROWS_MAX),
    )


def connection_from(configuration: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The connection's settings that a Spark configuration and an environment give, by the names of the options."""
    found = {}
    for name in CONNECTION_OPTIONS:
        value = configuration.get(f"spark.pythia.{name}") or environment.get(f"PYTHIA_{name.upper()}")
        if value:
            found[name] = value
    return found


def _settings(given: Mapping[str, str], connection: Mapping[str, str]) -> ClientSettings:
    values = {name: given.get(name) or connection.get(name) or "" for name in CONNECTION_OPTIONS}
    for name in ("zookeeper", "thrift"):
        if not values[name]:
            raise InvalidOption(
                f"the address of {name} is missing: give the option {name!r} as 'host:port', set "
                f"spark.pythia.{name} before client.spark.register(spark), or set PYTHIA_{name.upper()}"
            )
    settings = ClientSettings(values["zookeeper"], values["thrift"])
    return replace(settings, root=values["root"]) if values["root"] else settings


def _settings_of(handle: TransactionHandle | SnapshotHandle, given: Mapping[str, str]) -> ClientSettings:
    """The installation in which the handle's timestamps mean something; the job may repeat it, not change it."""
    for name in CONNECTION_OPTIONS:
        if given.get(name, getattr(handle.settings, name)) != getattr(handle.settings, name):
            raise InvalidOption(
                f"the option {name!r} names {given[name]!r}, but the given transaction or snapshot belongs to "
                f"{getattr(handle.settings, name)!r}: leave the option out"
            )
    return handle.settings


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise InvalidOption(f"the option 'columns' is a list of column names with commas between, not {text!r}")
    return names


def _whole_number(given: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = given.get(name, str(default))
    if not text.strip().isdecimal() or not 1 <= int(text) <= most:
        raise InvalidOption(f"the option {name!r} is a whole number from 1 to {most:,}, not {text!r}")
    return int(text)
