"""The data source ``pythia``, as Spark sees it.

::

    from client.spark import register

    register(spark)
    df.write.format("pythia").mode("append").option("table", "flights").save()
    spark.read.format("pythia").option("table", "flights").load()

Spark makes a source object in a Python process of its own for each use, so it holds values only. The save mode
``append`` replaces rows that have the same row key, ``overwrite`` deletes all others, too. Spark itself refuses the
other modes, its default one among them, for every Python source.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from typing import ClassVar, Final

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from client.spark.change_columns import with_change_columns
from client.spark.changes import ChangesReader, FilteringChangesReader, PythiaStreamReader, check_stream
from client.spark.connections import manager_for
from client.spark.errors import InvalidOption
from client.spark.mapping import TableMapping
from client.spark.options import CONNECTION_OPTIONS, connection_from, parse
from client.spark.reader import FilteringReader, PythiaReader
from client.spark.streaming import PythiaStreamWriter, check_streamable
from client.spark.tables import table_mapping
from client.spark.worker_interpreter import warn_of_a_server_without_us, warn_of_workers_without_us
from client.spark.writer import PythiaWriter

FILTER_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"


class PythiaDataSource(DataSource):
    """One use of a table by a job; see ``client.spark.options`` for what can be asked for."""

    connection: ClassVar[Mapping[str, str]] = {}
    """The connection's settings that were known where the source was registered."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._job = parse(options, self.connection, connection_from({}, os.environ))

    @classmethod
    def name(cls) -> str:
        """What stands behind ``format(...)`` and ``USING``."""
        return "pythia"

    def schema(self) -> StructType:
        """The table's columns, or those that the option ``columns`` names; of changes two more."""
        schema = self._mapping().to_struct(self._job.columns)
        return schema if self._job.changed_since is None else with_change_columns(schema, self._job.table)

    def reader(self, schema: StructType) -> PythiaReader | ChangesReader:
        """Read the columns of ``schema``."""
        self._require_to_read()
        if self._job.is_for_streams_of_changes:
            raise InvalidOption(
                "the options 'poll_interval_ms' and 'position_snapshot' are for streams: leave them out of a read"
            )
        if self._job.changed_since is not None:
            changes = FilteringChangesReader if self._job.push_filters else ChangesReader
            return changes(self._job, self._mapping(), schema)
        kind = FilteringReader if self._job.push_filters else PythiaReader
        return kind(self._job, self._mapping(), schema)

    def streamReader(self, schema: StructType) -> PythiaStreamReader:  # noqa: N802  # Spark's name
        """Read the columns of ``schema`` of what changes."""
        self._require_to_read()
        check_stream(self._job)
        return PythiaStreamReader(self._job, self._mapping(), schema)

    def _require_to_read(self) -> None:
        if self._job.operation != "upsert" or (self._job.overwrite_prefix, self._job.claim) != (None, None):
            raise InvalidOption(
                "the options 'operation', 'overwrite_prefix' and 'claim' are for writing: leave them out of a read"
            )

    def writer(self, schema: StructType, overwrite: bool) -> PythiaWriter:
        """Write a DataFrame of ``schema``, or delete the rows whose keys it has; ``overwrite``: and all other rows."""
        job, mapping = self._job, self._mapping()
        if job.is_for_reading:
            raise InvalidOption(
                "the options 'snapshot', 'as_of', 'changed_since', 'poll_interval_ms', 'position_snapshot' and "
                "'columns' are for reading: leave them out of a write"
            )
        if job.overwrite_prefix is not None and not overwrite:
            raise InvalidOption("the option 'overwrite_prefix' is for mode 'overwrite'; 'append' deletes nothing")
        if overwrite and job.operation == "delete":
            raise InvalidOption(
                "operation=delete deletes the rows of the DataFrame, mode 'overwrite' all others: use one"
            )
        check = mapping.check_keys if job.operation == "delete" else mapping.check_writable
        (mapping.check_replacing if overwrite else check)(schema)
        return PythiaWriter(job, mapping, schema.names, overwrite=overwrite)

    def _mapping(self) -> TableMapping:
        return table_mapping(manager_for(self._job.settings), self._job.table)

    def streamWriter(self, schema: StructType, overwrite: bool) -> PythiaStreamWriter:  # noqa: N802  # Spark's name
        """Write the micro-batches of a stream of ``schema``, each in a transaction of its own."""
        check_streamable(self._job, overwrite=overwrite)
        mapping = self._mapping()
        mapping.check_writable(schema)
        return PythiaStreamWriter(self._job, mapping, schema.names)


def register(spark: SparkSession) -> None:
    """Make the format ``pythia`` known to a Spark session, for the calling thread: call it in each thread that writes,
    and for each session of a driver's (``spark.newSession()``).

    The settings ``spark.pythia.zookeeper`` (or ``.oracle``), ``.thrift`` and ``.root`` of the session, or else the
    environment variables ``PYTHIA_ZOOKEEPER`` …, become the defaults of the options of those names.

    Spark hands filters to Python sources only where ``spark.sql.python.filterPushdown.enabled`` is true; it is set so
    for the session, unless it was given a value. The option ``push_filters`` needs it.

    Warns with ``WorkersLackPythia`` where the Python that Spark starts, on this machine or on that of Spark Connect's
    server, cannot import this library.
    """
    warn_of_workers_without_us(spark)
    names = [f"spark.pythia.{name}" for name in CONNECTION_OPTIONS]
    configuration = {name: value for name in names if (value := spark.conf.get(name, None)) is not None}
    if spark.conf.get(FILTER_PUSHDOWN, None) is None:
        spark.conf.set(FILTER_PUSHDOWN, "true")

    class Registered(PythiaDataSource):
        connection = connection_from(configuration, os.environ)

    # Spark looks formats up in the thread's active session: a new thread has none, and where another session of the
    # driver's is active, the name that it knows is refused for this one. Of Spark's public calls this is the cheapest
    # that sets it.
    spark.createDataFrame([], "nothing int")
    spark.dataSource.register(Registered)
    warn_of_a_server_without_us(spark, Registered.name())
