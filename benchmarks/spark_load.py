"""What a Spark job pays for its transaction, beside the job that people write today.

    python -m benchmarks.spark_load --zookeeper H:P --thrift H:P [--root /pythia] [--months 3] [--json]

*Ours*: flights (19 columns) written by ``df.write.format("pythia")`` in one transaction, shadow cells included, and
read back at one snapshot. *Beside*: the same DataFrame written row by row with HappyBase's ``batch.put`` in the same
number of Spark tasks, values as text, without any transaction, and read back with HappyBase's ``scan``. Each round
takes new tables. Rows a second of the whole job: a ratio above 1 means that the transactional job is the faster one.
"""

from __future__ import annotations

import json
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import happybase
from pyspark.sql import DataFrame, Row, SparkSession

from benchmarks.rounds import Case
from client import ClientSettings, TransactionManager
from client.spark import TableMapping, create_table, register
from demo.flights import KEY, read_flights
from demo.load import spark_session
from demo.tables import arrow_table, mapping_of_flights
from store import Family

PARTITIONS = 4
BATCH_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Bench:
    """One run: the services, the session, and the flights as a DataFrame that Spark holds."""

    manager: TransactionManager
    spark: SparkSession
    flights: DataFrame
    rows: int
    mapping: TableMapping

    def ours(self) -> tuple[float, float]:
        """Rows a second of one write and one read of ours."""
        table = f"benchmark_ours_{uuid.uuid4().hex[:8]}"
        create_table(self.manager, TableMapping(table, self.mapping.row_key, self.mapping.columns))
        settings = self.manager.settings
        options = {"table": table, "zookeeper": settings.zookeeper, "thrift": settings.thrift, "root": settings.root}
        write = self._rate(lambda: self.flights.write.format("pythia").mode("append").options(**options).save())
        read = self._rate(
            lambda: (
                self.spark.read.format("pythia").options(**options).load().write.format("noop").mode("append").save()
            )
        )
        self.manager.drop_table(table)
        return write, read

    def beside(self) -> tuple[float, float]:
        """Rows a second of one write and one read by HappyBase, row by row."""
        table = f"benchmark_beside_{uuid.uuid4().hex[:8]}"
        self.manager.store.create_table(table, [Family("f", versions_max=1)])
        thrift = self.manager.settings.thrift
        write = self._rate(lambda: self.flights.foreachPartition(lambda rows: write_plain(thrift, table, rows)))
        months = self.spark.sparkContext.parallelize(range(1, PARTITIONS + 1), PARTITIONS)
        read = self._rate(lambda: months.flatMap(lambda part: read_plain(thrift, table, part)).count())
        self.manager.store.drop_table(table)
        return write, read

    def _rate(self, job: Callable[[], object]) -> float:
        started = time.monotonic()
        job()
        return self.rows / (time.monotonic() - started)


def write_plain(thrift: str, table: str, rows: Iterable[Row]) -> None:
    """What a Spark task does today: a connection, a batch, a put for each row."""
    host, _, port = thrift.rpartition(":")
    connection = happybase.Connection(host, int(port))
    with connection.table(table).batch(batch_size=BATCH_ROWS) as batch:
        for row in rows:
            values = row.asDict()
            key = "/".join(str(values[name]).zfill(5) for name in KEY)
            cells = {f"f:{name}".encode(): str(value).encode() for name, value in values.items() if value is not None}
            batch.put(key.encode(), cells)
    connection.close()


def read_plain(thrift: str, table: str, part: int) -> Iterator[dict[str, str]]:
    """One part of a table, as dictionaries of text."""
    host, _, port = thrift.rpartition(":")
    connection = happybase.Connection(host, int(port))
    start = None if part == 1 else f"{part:05}".encode()
    stop = None if part == PARTITIONS else f"{part + 1:05}".encode()
    for _, cells in connection.table(table).scan(row_start=start, row_stop=stop, batch_size=BATCH_ROWS):
        yield {column.decode(): value.decode() for column, value in cells.items()}
    connection.close()


def measure(bench: Bench, *, rounds: int, progress: Callable[[str], None]) -> list[Case]:
    """Both jobs in turn, after a round of each that does not count."""
    bench.ours(), bench.beside()
    write, read = Case("write", [], []), Case("read", [], [])
    for number in range(rounds):
        for case, ours, beside in zip((write, read), bench.ours(), bench.beside(), strict=True):
            case.ours.append(ours)
            case.beside.append(beside)
            progress(f"round {number + 1} of {rounds}: {case.name} {ours:,.0f} / {beside:,.0f} rows a second")
    return [write, read]


@click.command()
@click.option("--zookeeper", required=True, envvar="PYTHIA_ZOOKEEPER", help="ZooKeeper, host:port.")
@click.option("--thrift", required=True, envvar="PYTHIA_THRIFT", help="HBase's Thrift gateway, host:port.")
@click.option("--root", default="/pythia", show_default=True, envvar="PYTHIA_ROOT", help="Znode of the installation.")
@click.option("--months", default=4, show_default=True, type=click.IntRange(1, 12), help="How much of the year.")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1, 100), help="Alternating rounds.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object at the end instead of lines.")
def main(zookeeper: str, thrift: str, root: str, months: int, rounds: int, as_json: bool) -> None:
    """Measure a transactional Spark job beside a plain one, on services and an oracle that are up."""
    settings = ClientSettings(zookeeper=zookeeper, thrift=thrift, root=root)
    flights = read_flights(months)
    mapping = mapping_of_flights("benchmark", flights)
    with (
        tempfile.TemporaryDirectory() as directory,
        spark_session(Path(directory) / "spark.log") as spark,
        TransactionManager.connect(settings) as manager,
    ):
        register(spark)
        frame = spark.createDataFrame(arrow_table(mapping, flights)).repartition(PARTITIONS).persist()
        frame.count()
        bench = Bench(manager, spark, frame, len(flights), mapping)
        cases = measure(bench, rounds=rounds, progress=lambda line: click.echo(line, err=True))
    if as_json:
        click.echo(json.dumps({"rows": len(flights), "cases": [case.summary() for case in cases]}))
        return
    for case in cases:
        click.echo(case.line("rows"))


if __name__ == "__main__":
    main()
