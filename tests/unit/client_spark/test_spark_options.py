"""Which options a job may give, which place wins, and what an error says."""

from __future__ import annotations

import datetime as dt

import pytest

from client import ClientSettings, InvalidRequest, SnapshotHandle, TransactionHandle
from client.spark.errors import InvalidOption
from client.spark.options import connection_from, parse
from commit_table.timestamps import compose

CONNECTION = {"zookeeper": "127.0.0.1:1", "thrift": "127.0.0.1:2"}
SETTINGS = ClientSettings("127.0.0.1:1", "127.0.0.1:2", "/here")
TRANSACTION = TransactionHandle(30, 20, 10, SETTINGS)
SNAPSHOT = SnapshotHandle(20, 10, SETTINGS)


def test_the_table_is_all_that_a_job_has_to_name() -> None:
    job = parse({"table": "t"}, CONNECTION)
    assert (job.table, job.settings) == ("t", ClientSettings("127.0.0.1:1", "127.0.0.1:2"))
    assert (job.transaction, job.snapshot, job.columns, job.min_partitions) == (None, None, None, 4)


def test_options_win_over_the_connection() -> None:
    job = parse({"Table": "t", "ZooKeeper": "127.0.0.1:3", "root": "/there"}, {**CONNECTION, "root": "/here"})
    assert job.settings == ClientSettings("127.0.0.1:3", "127.0.0.1:2", "/there")


def test_every_other_option() -> None:
    job = parse({"table": "t", "columns": "a, b", "min_partitions": "9", "batch_rows": "10"}, CONNECTION)
    assert (job.columns, job.min_partitions, job.batch_rows) == (("a", "b"), 9, 10)
    assert (job.operation, job.overwrite_prefix, job.push_filters) == ("upsert", None, False)
    assert parse({"table": "t", "push_filters": "True"}, CONNECTION).push_filters
    job = parse({"table": "t", "operation": "Delete", "overwrite_prefix": "[7]"}, CONNECTION)
    assert (job.operation, job.overwrite_prefix) == ("delete", "[7]")
    assert job.settings.bulk_shadow_cells == "written"
    assert parse({"table": "t", "shadow_cells": "None"}, CONNECTION).settings.bulk_shadow_cells == "none"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2013-07-04T12:00:00Z", dt.datetime(2013, 7, 4, 12, tzinfo=dt.UTC)),
        (" 2013-07-04 12:00:00.250-04:00 ", dt.datetime(2013, 7, 4, 16, 0, 0, 250_000, tzinfo=dt.UTC)),
        (str(compose(1_372_939_200_000, 7)), compose(1_372_939_200_000, 7)),
        (" end-of-2013 ", "end-of-2013"),
    ],
)
def test_a_moment_is_a_timestamp_a_time_with_its_zone_or_a_name(text: str, moment: int | dt.datetime | str) -> None:
    assert parse({"table": "t", "as_of": text}, CONNECTION).as_of == moment


@pytest.mark.parametrize(("text", "moment"), [(" 0 ", 0), ("end-of-2013", "end-of-2013")])
def test_what_changed_is_told_since_a_moment_or_the_beginning(text: str, moment: int | str) -> None:
    job = parse({"table": "t", "changed_since": text, "as_of": "now-or-then", "poll_interval_ms": "60000"}, CONNECTION)
    assert (job.changed_since, job.as_of, job.poll_interval_ms) == (moment, "now-or-then", 60_000)


def test_a_handle_brings_its_connection() -> None:
    assert parse({"table": "t", "transaction": TRANSACTION.to_json()}, {}).settings == SETTINGS
    job = parse({"table": "t", "snapshot": SNAPSHOT.to_json(), "root": "/here"}, {})
    assert (job.snapshot, job.settings) == (SNAPSHOT, SETTINGS)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"option.table": "t", "owner": "me", "provider": "pythia"}, "CREATE TABLE ... USING pythia needs its columns"),
        ({"path": "flights"}, "there is no path ('flights'): name the table with .option('table', ...)"),
        ({"table": "t", "tabel": "u"}, "unknown option tabel; the options are table, transaction, snapshot, as_of"),
        ({}, "the option 'table' is missing"),
        (
            {"table": "t", "transaction": TRANSACTION.to_json(), "snapshot": SNAPSHOT.to_json()},
            "give one of 'transaction', 'snapshot'",
        ),
        ({"table": "t", "as_of": "2013-07-04T12:00:00Z", "snapshot": SNAPSHOT.to_json()}, "give one of"),
        ({"table": "t", "as_of": "2013-07-04T12:00:00"}, "a time with its zone such as"),
        ({"table": "t", "as_of": "2013-07-04"}, "a time with its zone such as"),
        ({"table": "t", "as_of": "yesterday at noon"}, "the option 'as_of': a moment is a timestamp of Pythia's, the"),
        ({"table": "t", "as_of": "²"}, "a time with its zone such as"),
        ({"table": "t", "as_of": "9" * 5_000}, "a time with its zone such as"),
        ({"table": "t", "as_of": "1372939200000"}, "seconds or milliseconds since then are no timestamps"),
        ({"table": "t", "changed_since": "1"}, "the option 'changed_since': the timestamp 1 is of the year 1970"),
        ({"table": "t", "changed_since": ""}, "the option 'changed_since': a moment is"),
        ({"table": "t", "position_snapshot": "1st"}, "the option 'position_snapshot': a snapshot's name is a letter"),
        ({"table": "t", "poll_interval_ms": "86400001"}, "from 1 to 86,400,000, not '86400001'"),
        ({"table": "t", "transaction": TRANSACTION.to_json(), "root": "/there"}, "leave the option out"),
        ({"table": "t", "columns": "a,,b"}, "a list of column names"),
        ({"table": "t", "columns": ""}, "a list of column names"),
        ({"table": "t", "push_filters": "1"}, "is 'true' or 'false', not '1'"),
        ({"table": "t", "operation": "merge"}, "is 'upsert' or 'delete', not 'merge'"),
        ({"table": "t", "shadow_cells": "never"}, "is 'written' or 'deferred' or 'none', not 'never'"),
        ({"table": "t", "min_partitions": "0"}, "from 1 to 10,000, not '0'"),
        ({"table": "t", "batch_rows": "many"}, "from 1 to 100,000, not 'many'"),
    ],
)
def test_options_that_cannot_be_served_are_refused(options: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        parse(options, CONNECTION)
    assert text in str(caught.value)


@pytest.mark.parametrize("missing", ["zookeeper", "thrift"])
def test_a_missing_address_is_named_with_the_places_where_it_can_be_given(missing: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        parse({"table": "t"}, {name: value for name, value in CONNECTION.items() if name != missing})
    for place in (f"option {missing!r}", f"spark.pythia.{missing}", f"PYTHIA_{missing.upper()}"):
        assert place in str(caught.value)


@pytest.mark.parametrize("option", ["transaction", "snapshot"])
@pytest.mark.parametrize("text", ["", "{}", "rubbish", '{"start_timestamp": 1}'])
def test_a_handle_that_cannot_be_read_is_refused(option: str, text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse({"table": "t", option: text}, CONNECTION)


def test_an_oracle_that_is_alone_is_named_in_place_of_zookeeper() -> None:
    options = {"table": "t", "oracle": "127.0.0.1:7"}
    assert parse(options, {"thrift": "127.0.0.1:2"}).settings == ClientSettings("", "127.0.0.1:2", oracle="127.0.0.1:7")
    # What a job says goes before what its surroundings say of the other name.
    assert (parse(options, CONNECTION).settings.oracle, parse(options, CONNECTION).settings.zookeeper) == (
        "127.0.0.1:7",
        "",
    )
    alone = {"oracle": "127.0.0.1:7", "thrift": "127.0.0.1:2"}
    assert parse({"table": "t", "zookeeper": "127.0.0.1:1"}, alone).settings.zookeeper == "127.0.0.1:1"
    assert connection_from({"spark.pythia.oracle": "127.0.0.1:7"}, {"PYTHIA_ZOOKEEPER": "127.0.0.1:1"}) == {
        "oracle": "127.0.0.1:7"
    }
    assert parse({"table": "t"}, alone, CONNECTION).settings.oracle == "127.0.0.1:7"
    assert parse({"table": "t"}, CONNECTION, alone).settings.zookeeper == CONNECTION["zookeeper"]


@pytest.mark.parametrize("place", ["options", "connection"])
def test_zookeeper_and_an_oracle_in_one_place_are_refused(place: str) -> None:
    both = {"zookeeper": "127.0.0.1:1", "oracle": "127.0.0.1:7", "thrift": "127.0.0.1:2"}
    with pytest.raises(InvalidOption, match="give one of them"):
        parse({"table": "t", **(both if place == "options" else {})}, both if place == "connection" else {})


def test_the_configuration_wins_over_the_environment() -> None:
    configuration = {"spark.pythia.zookeeper": "127.0.0.1:1", "spark.other": "x"}
    environment = {"PYTHIA_ZOOKEEPER": "127.0.0.1:9", "PYTHIA_THRIFT": "127.0.0.1:2", "PYTHIA_ROOT": ""}
    assert connection_from(configuration, environment) == CONNECTION
