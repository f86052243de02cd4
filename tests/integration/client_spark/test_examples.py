"""The examples do what they say, and run as they say."""

from __future__ import annotations

import datetime
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from types import ModuleType

import httpx
import pytest
from pyspark.sql import SparkSession

from client import ClientSettings, TransactionManager
from drills.waiting import wait_until
from tests.imports import ROOT
from tests.integration.command_processes import environment_of
from tests.spark_jobs.examples import EXAMPLE_SECONDS_MAX, run_example
from tests.spark_jobs.session import environment

pytestmark = pytest.mark.integration


def example(name: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_every_example_is_tested() -> None:
    named = Path(__file__).read_text(encoding="utf-8")
    for file in (ROOT / "examples").glob("*.py"):
        assert f'"{file.stem}' in named, f"no test runs {file.name}"


AGAIN = pytest.mark.parametrize("again", ["at first", "again, by whoever copies it and tries it twice"])


@AGAIN
def test_two_jobs_that_change_the_same_rows_both_count(
    spark: SparkSession, manager: TransactionManager, again: str
) -> None:
    assert example("concurrent_jobs").run(spark, manager) == {"bolt": 43, "nut": 43}


@AGAIN
def test_a_change_closes_a_row_and_opens_another_one(
    spark: SparkSession, manager: TransactionManager, again: str
) -> None:
    rows = [tuple(row) for row in example("slowly_changing_dimension").run(spark, manager).collect()]
    january, june = datetime.date(2026, 1, 1), datetime.date(2026, 6, 1)
    assert rows == [
        ("ada", january, june, "London"),
        ("ada", june, None, "Paris"),
        ("bob", january, None, "Bergen"),
        ("cyd", june, None, "Rome"),
    ]


def test_a_stream_of_files_lands_and_goes_on(spark: SparkSession, manager: TransactionManager, tmp_path: Path) -> None:
    run = example("streaming_upsert").run
    folder, checkpoint = tmp_path / "files", tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "1.json").write_text('{"sensor": "a", "celsius": 20.5}\n{"sensor": "b", "celsius": 7.0}\n')
    assert [tuple(row) for row in run(spark, manager, folder, checkpoint).collect()] == [("a", 20.5), ("b", 7.0)]
    (folder / "2.json").write_text('{"sensor": "a", "celsius": 21.0}\n')
    assert [tuple(row) for row in run(spark, manager, folder, checkpoint).collect()] == [("a", 21.0), ("b", 7.0)]


@AGAIN
def test_several_tables_in_one_transaction(spark: SparkSession, manager: TransactionManager, again: str) -> None:
    rows = [tuple(row) for row in example("multi_table_etl").run(spark, manager).collect()]
    assert rows == [
        ("ada", Decimal("14.75"), Decimal("14.75")),
        ("bob", Decimal("99.00"), Decimal("99.00")),
    ]


@AGAIN
def test_sums_follow_what_changed(
    spark: SparkSession, manager: TransactionManager, capsys: pytest.CaptureFixture[str], again: str
) -> None:
    following = example("following_changes")
    rows = [tuple(row) for row in following.run(spark, manager).collect()]
    assert rows == [("north", 2, 15), ("south", 2, 10)]
    computed = capsys.readouterr().out.splitlines()
    assert computed[-1] == "computed: ['south', 'west']"
    assert following.follow(spark, manager) == []


def test_an_example_runs_as_its_first_lines_say(oracle: ClientSettings) -> None:
    assert "Bergen" in run_example("slowly_changing_dimension", oracle)


@pytest.fixture
def service(oracle: ClientSettings, manager: TransactionManager, tmp_path: Path) -> Iterator[httpx.Client]:
    """``transfers_service``, as its first lines say."""
    command = [sys.executable, "-m", "uvicorn", "--app-dir", "examples", "transfers_service:app", "--port", "0"]
    log = tmp_path / "service.log"
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=environment_of(oracle) | environment(), stderr=output)
    try:
        wait_until(lambda: "running on" in log.read_text(), "the service to start", EXAMPLE_SECONDS_MAX, log.read_text)
        address = log.read_text().partition("running on ")[2].split()[0]
        with httpx.Client(base_url=address, timeout=EXAMPLE_SECONDS_MAX) as client:
            yield client
    finally:
        process.terminate()
        process.wait(EXAMPLE_SECONDS_MAX)
        manager.drop_table("example_accounts")


def test_a_service_on_asyncio_loses_no_money(service: httpx.Client, oracle: ClientSettings) -> None:
    def transfer(payer: str, payee: str, amount: int) -> int:
        return service.post("/transfers", json={"payer": payer, "payee": payee, "amount": amount}).status_code

    assert transfer("bank", "alice", 10) == 204
    with ThreadPoolExecutor(20) as callers:
        answers = list(callers.map(lambda _: transfer("alice", "bob", 1), range(20)))
    assert sorted(answers) == [204] * 10 + [409] * 10
    assert service.get("/accounts").json() == {"alice": 0, "bank": -10, "bob": 10}
    assert transfer("", "bob", 1) == 422
    committed = f'pythia_client_commits_total{{result="committed",root="{oracle.root}"}} 11.0\n'
    assert committed in service.get("/metrics").text
