"""The options of the data source: which there are, and where one comes from that a job does not give. Pure.

Spark hands a source the options of ``.option(...)`` and of ``WITH (...)``, with names in lower case, but not those of a
catalog table; and to ``CREATE TABLE`` without columns it hands names of its own, so give the columns there. Hence the
connection has three places, of which the first one that names it wins: the option, the Spark configuration
(``spark.pythia.zookeeper``, read when the source is registered), the environment (``PYTHIA_ZOOKEEPER``). An oracle that
is alone is named by ``oracle`` in place of ``zookeeper``: whichever is named first wins over the other, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from client.errors import InvalidRequest
from client.handles import SnapshotHandle, TransactionHandle
from client.settings import BULK_SHADOW_CELLS, ClientSettings
from client.snapshots.moments import Moment, parse_moment, parse_since, validate_name
from client.spark.errors import InvalidOption
from client.transactions.claims import row_of

_WHERE: Final = ("zookeeper", "oracle")
"""Each says where the oracle is: the installation's, or one that is alone."""
CONNECTION_OPTIONS: Final = (*_WHERE, "thrift", "root")
_JOB_OPTIONS: Final = (
    "table", "transaction", "snapshot", "as_of", "changed_since", "poll_interval_ms", "position_snapshot",
    "columns", "min_partitions", "batch_rows", "push_filters", "operation", "overwrite_prefix", "shadow_cells",
    "claim",
)  # fmt: skip
OPERATIONS: Final = ("upsert", "delete")
_VIEWS: Final = ("transaction", "snapshot", "as_of")
KNOWN_OPTIONS: Final = (*_JOB_OPTIONS, *CONNECTION_OPTIONS)
_SPARKS_OPTIONS: Final = ("checkpointlocation", "queryname")
"""What Spark itself is told by the options of a streaming write, and hands on."""

MIN_PARTITIONS: Final = 4
READ_BATCH_ROWS: Final = 10_000
"""Rows of an Arrow batch that is read, by default: as many as Spark makes of its own."""
WRITE_BATCH_ROWS: Final = 50_000
"""Rows that are written together, by default, of as many of Spark's Arrow batches: each time costs a manifest row, and
a look whether the transaction is open."""
MIN_PARTITIONS_MAX: Final = 10_000
POLL_INTERVAL_MS: Final = 10_000
"""How long a stream of changes waits for the next of them, by default: each batch reads the whole table."""
_POLL_INTERVAL_MS_MAX: Final = 86_400_000
_BATCH_ROWS_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a job asked for. ``transaction``, ``snapshot`` and ``as_of`` exclude one another; with none of them, the job
    has a transaction or snapshot of its own.

    ``as_of``: the moment to read at: a timestamp, a time with its zone, or the name of a snapshot.
    ``changed_since``: read what has changed since that moment; 0 for the beginning. ``poll_interval_ms``: how far apart
    the batches of a stream of changes are at least, by default ``POLL_INTERVAL_MS``. ``position_snapshot``: the name of
    a snapshot that such a stream moves with it.
    ``columns``: the columns to read, ``None`` for all. ``min_partitions``: into how many parts a read is split at
    least, if the keys allow it. ``batch_rows``: rows that are encoded or decoded, and held in memory, at a time, by
    default ``READ_BATCH_ROWS`` and ``WRITE_BATCH_ROWS``.
    ``push_filters``: whether a read narrows itself by filters; not by default, since Spark 4.3.0 uses what was planned
    for one filter for other uses of the same DataFrame, too. ``operation``: what a write does with its rows.
    ``overwrite_prefix``: the part of the table that an overwrite replaces, as text for ``client.spark.key_values``.
    ``claim``: the table's key by which a write lands once, however often it is started (``Transaction.claim``).
    Whether the shadow cells of a write are written before it returns, deferred, or left out is in its ``settings``.
    """

    settings: ClientSettings
    table: str
    transaction: TransactionHandle | None = None
    snapshot: SnapshotHandle | None = None
    as_of: Moment | None = None
    changed_since: Moment | None = None
    poll_interval_ms: int | None = None
    position_snapshot: str | None = None
    columns: tuple[str, ...] | None = None
    min_partitions: int = MIN_PARTITIONS
    batch_rows: int | None = None
    push_filters: bool = False
    operation: str = "upsert"
    overwrite_prefix: str | None = None
    claim: str | None = None

    @property
    def is_for_reading(self) -> bool:
        """Whether something was asked for that has no meaning in a write."""
        return (
            any(given is not None for given in (self.snapshot, self.as_of, self.changed_since, self.columns))
            or self.is_for_streams_of_changes
        )

    @property
    def is_for_streams_of_changes(self) -> bool:
        """Whether something was asked for that only these have."""
        return (self.poll_interval_ms, self.position_snapshot) != (None, None)


def parse(options: Mapping[str, str], *connections: Mapping[str, str]) -> SourceOptions:
    """Read a job's options. ``connections``: places with the connection's settings by name, for those that the job does
    not give; the first that names one wins.

    Raises ``InvalidOption``, or ``InvalidRequest`` for a handle that cannot be read.
    """
    given = {name.lower(): value for name, value in options.items()}
    unknown = sorted(set(given) - {*KNOWN_OPTIONS, *_SPARKS_OPTIONS})
    if "provider" in unknown:
        raise InvalidOption(
            "CREATE TABLE ... USING pythia needs its columns, since Spark passes the table's options on to nobody: "
            "CREATE TABLE t (k BIGINT, ...) USING pythia, then SELECT ... FROM t WITH (table = '...'); or use "
            "CREATE TEMPORARY VIEW t USING pythia OPTIONS (table '...'), which finds them itself"
        )
    if "path" in unknown:
        raise InvalidOption(
            f"there is no path ({given['path']!r}): name the table with .option('table', ...), and give load(), save() "
            "and start() nothing"
        )
    if unknown:
        raise InvalidOption(f"unknown option {', '.join(unknown)}; the options are {', '.join(KNOWN_OPTIONS)}")
    if not given.get("table"):
        raise InvalidOption(
            "the option 'table' is missing: use .option('table', ...), a temporary view with OPTIONS, or, since Spark "
            "does not pass the options of a catalog table on, SELECT ... FROM t WITH (table = '...')"
        )
    views = [name for name in _VIEWS if name in given]
    if len(views) > 1:
        raise InvalidOption(f"give one of {', '.join(map(repr, views))}: each says by itself what is seen of the table")
    transaction = TransactionHandle.from_json(given["transaction"]) if "transaction" in given else None
    snapshot = SnapshotHandle.from_json(given["snapshot"]) if "snapshot" in given else None
    handle = transaction or snapshot
    return SourceOptions(
        settings=_settings(given, connections) if handle is None else _settings_of(handle, given),
        table=given["table"],
        transaction=transaction,
        snapshot=snapshot,
        as_of=_moment(given, "as_of", parse_moment),
        changed_since=_moment(given, "changed_since", parse_since),
        poll_interval_ms=_whole_number(given, "poll_interval_ms", _POLL_INTERVAL_MS_MAX),
        position_snapshot=_name(given, "position_snapshot"),
        columns=_columns(given["columns"]) if "columns" in given else None,
        min_partitions=_whole_number(given, "min_partitions", MIN_PARTITIONS_MAX) or MIN_PARTITIONS,
        batch_rows=_whole_number(given, "batch_rows", _BATCH_ROWS_MAX),
        push_filters=_truth(given, "push_filters"),
        operation=_one_of(given, "operation", OPERATIONS),
        overwrite_prefix=given.get("overwrite_prefix"),
        claim=_claim(given),
    )


def connection_from(configuration: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The connection's settings that a Spark configuration and an environment give, by the names of the options."""
    configured = {name: configuration.get(f"spark.pythia.{name}", "") for name in CONNECTION_OPTIONS}
    return _first(configured, {name: environment.get(f"PYTHIA_{name.upper()}", "") for name in CONNECTION_OPTIONS})


def _first(*places: Mapping[str, str]) -> dict[str, str]:
    """The connection's settings, each from the first place that names it; of those that say where the oracle is, the
    one that is named first, so that it can be said in a job, whatever the environment says.
    """
    found: dict[str, str] = {}
    for place in places:
        named = {name: place[name] for name in CONNECTION_OPTIONS if place.get(name)}
        if any(name in found for name in _WHERE):
            named = {name: value for name, value in named.items() if name not in _WHERE}
        found = {**named, **found}
    return found


def _settings(given: Mapping[str, str], connections: Sequence[Mapping[str, str]]) -> ClientSettings:
    values = _first(given, *connections)
    where = [name for name in _WHERE if name in values]
    if len(where) == len(_WHERE):
        raise InvalidOption("both 'zookeeper' and 'oracle' say where the oracle is: give one of them")
    for name in (where[0] if where else "zookeeper", "thrift"):
        if name not in values:
            raise InvalidOption(
                f"the address of {name} is missing: give the option {name!r} as 'host:port', set "
                f"spark.pythia.{name} before client.spark.register(spark), or set PYTHIA_{name.upper()}"
                + (" (or 'oracle' so, for one that is alone)" if name == "zookeeper" else "")
            )
    settings = ClientSettings(
        values.get("zookeeper", ""),
        values["thrift"],
        oracle=values.get("oracle", ""),
        bulk_shadow_cells=_one_of(given, "shadow_cells", BULK_SHADOW_CELLS),
    )
    return replace(settings, root=values["root"]) if "root" in values else settings


def _settings_of(handle: TransactionHandle | SnapshotHandle, given: Mapping[str, str]) -> ClientSettings:
    """The installation in which the handle's timestamps mean something; the job may repeat it, not change it."""
    if "shadow_cells" in given:
        raise InvalidOption(
            "the option 'shadow_cells' is for a write with a transaction of its own: for the given one its commit "
            "decides, by bulk_shadow_cells of its ClientSettings"
        )
    for name in CONNECTION_OPTIONS:
        if given.get(name, getattr(handle.settings, name)) != getattr(handle.settings, name):
            raise InvalidOption(
                f"the option {name!r} names {given[name]!r}, but the given transaction or snapshot belongs to "
                f"{getattr(handle.settings, name)!r}: leave the option out"
            )
    return handle.settings


def _moment(given: Mapping[str, str], name: str, parsed: Callable[[str], Moment]) -> Moment | None:
    """``None`` where it is not given."""
    if name not in given:
        return None
    try:
        return parsed(given[name])
    except InvalidRequest as error:
        raise InvalidOption(f"the option {name!r}: {error}") from error


def _name(given: Mapping[str, str], name: str) -> str | None:
    """``None`` where it is not given."""
    try:
        if name in given:
            validate_name(given[name])
    except InvalidRequest as error:
        raise InvalidOption(f"the option {name!r}: {error}") from error
    return given.get(name)


def _claim(given: Mapping[str, str]) -> str | None:
    """``None`` where it is not given."""
    key = given.get("claim")
    if key is None:
        return None
    if "transaction" in given:
        raise InvalidOption(
            "the option 'claim' is for a write with a transaction of its own: in the given one its holder claims the "
            "key for all that it writes, with transaction.claim(...)"
        )
    try:
        row_of(key)
    except InvalidRequest as error:
        raise InvalidOption(f"the option 'claim': {error}") from error
    return key


def _columns(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise InvalidOption(f"the option 'columns' is a list of column names with commas between, not {text!r}")
    return names


def _truth(given: Mapping[str, str], name: str) -> bool:
    text = given.get(name, "false").strip().lower()
    if text not in ("true", "false"):
        raise InvalidOption(f"the option {name!r} is 'true' or 'false', not {text!r}")
    return text == "true"


def _one_of(given: Mapping[str, str], name: str, choices: Sequence[str]) -> str:
    """The value of an option, by default the first of its choices."""
    chosen = given.get(name, choices[0]).strip().lower()
    if chosen not in choices:
        raise InvalidOption(f"the option {name!r} is {' or '.join(map(repr, choices))}, not {given[name]!r}")
    return chosen


def _whole_number(given: Mapping[str, str], name: str, most: int) -> int | None:
    """``None`` where it is not given."""
    if name not in given:
        return None
    text = given[name]
    if not text.strip().isdecimal() or not 1 <= int(text) <= most:
        raise InvalidOption(f"the option {name!r} is a whole number from 1 to {most:,}, not {text!r}")
    return int(text)
