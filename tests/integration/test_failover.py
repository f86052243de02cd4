"""Applications on real ZooKeeper and HBase while the primary is killed, paused, told to hand over, or gone for good."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from client import ClientSettings, Committed, Conflict, NoPrimary, PythiaError, Transaction, TransactionManager
from client.claims import claims
from commit_table import system_table
from drills.waiting import wait_until
from fleet import ask_everything
from store import StoreError
from store.hbase import HBaseCellStore
from tests.integration.oracle_processes import SHORT_LEASE_MS

if TYPE_CHECKING:
    from tests.integration.conftest import Installation

pytestmark = pytest.mark.integration

TABLE, COLUMN = "failover", b"f:value"
WAIT_SECONDS_MAX = 120


@pytest.fixture
def manager(installation: Installation) -> Iterator[TransactionManager]:
    """A manager of an installation with a primary; the table is dropped afterwards."""
    installation.start("a", SHORT_LEASE_MS).until_primary()
    with TransactionManager.connect(installation.settings) as manager:
        manager.create_table(TABLE, ["f"])
        try:
            yield manager
        finally:
            manager.store.drop_table(TABLE)


def add_one(row: bytes) -> Callable[[Transaction], None]:
    def add(transaction: Transaction) -> None:
        number = int(transaction.get(TABLE, row).get(COLUMN, b"0"))
        transaction.put(TABLE, row, {COLUMN: b"%d" % (number + 1)})

    return add


class Load:
    """Threads that add one to a row of their own, and to one that they share, until they are told to stop."""

    def __init__(self, manager: TransactionManager, threads: int) -> None:
        self._manager = manager
        self._stopping = threading.Event()
        self._threads = ThreadPoolExecutor(threads)
        self._added = [self._threads.submit(self._work, b"row%d" % number) for number in range(threads)]
        self.threads = threads

    def _work(self, row: bytes) -> int:
        count = 0
        while not self._stopping.is_set():
            self._manager.run(add_one(row))
            self._manager.run(add_one(b"shared"), attempts_max=1_000)
            count += 1
        return count

    def stop(self) -> list[int]:
        """How often each thread added; raises what went wrong in any of them."""
        self._stopping.set()
        added = [future.result(WAIT_SECONDS_MAX) for future in self._added]
        self._threads.shutdown()
        return added


def check_sums(manager: TransactionManager, added: list[int]) -> None:
    snapshot = manager.snapshot()
    assert [int(snapshot.get(TABLE, b"row%d" % number)[COLUMN]) for number in range(len(added))] == added
    assert int(snapshot.get(TABLE, b"shared")[COLUMN]) == sum(added)


def handover(installation: Installation, how: str = "handover") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tso", how, "--json", "--root", installation.root]
    where = ["--zookeeper", installation.services.zookeeper]
    return subprocess.run([*command, *where], capture_output=True, text=True, check=False, timeout=WAIT_SECONDS_MAX)


def is_warm(address: str) -> bool:
    details = ask_everything(address, 1_000 * WAIT_SECONDS_MAX).details
    return details is not None and details.warm


@pytest.mark.parametrize("end", ["killed", "paused", "told to hand over", "drained"])
def test_no_transaction_is_lost_or_aborted_by_a_failover(
    installation: Installation, manager: TransactionManager, end: str
) -> None:
    standby = installation.start("b", SHORT_LEASE_MS)
    in_flight = [manager.transaction() for _ in range(5)]
    for number, transaction in enumerate(in_flight):
        transaction.put(TABLE, b"in flight %d" % number, {COLUMN: b"1"})
    load = Load(manager, threads=3)
    first = installation.oracles[0]
    if end == "killed":
        first.end(signal.SIGKILL)
    elif end == "paused":
        os.kill(first.process.pid, signal.SIGSTOP)
    elif end == "drained":
        wait_until(lambda: is_warm(standby.address), "the standby to be warm", WAIT_SECONDS_MAX)
        told = handover(installation, "drain")
        assert told.returncode == 0, told.stderr
        assert json.loads(told.stdout)["primary"] == "b"
        assert first.process.wait(WAIT_SECONDS_MAX) == 0
        first.end(signal.SIGTERM)  # it has ended by itself: this gives back its output
    else:
        told = handover(installation)
        assert told.returncode == 0, told.stderr
        handed_over = json.loads(told.stdout)  # by either: a machine that stalls has them change places before
        assert {handed_over["from_holder"], handed_over["to_holder"]} == {"a", "b"}
    if end != "told to hand over":
        standby.until_primary()
    if end == "paused":
        os.kill(first.process.pid, signal.SIGCONT)
    for transaction in in_flight:
        assert isinstance(transaction.commit(), Committed)
    check_sums(manager, load.stop())
    snapshot = manager.snapshot()
    assert all(snapshot.get(TABLE, b"in flight %d" % number) for number in range(len(in_flight)))


class Restless(Load):
    """Threads of programs that give up soon, each of which starts its work again by the same key, and does not ask what
    became of it, until it is told that it has landed; then the next.
    """

    def __init__(self, manager: TransactionManager, threads: int) -> None:
        self._settings = dataclasses.replace(manager.settings, deadline_ms=200, request_timeout_ms=100)
        self.answers: list[str] = []
        """What all of it was told."""
        super().__init__(manager, threads)

    def _work(self, row: bytes) -> int:
        count = 0
        with TransactionManager.connect(self._settings) as manager:
            while not self._stopping.is_set():
                while self._start(manager, row, count) not in ("landed", "had landed"):
                    pass
                count += 1
        return count

    def _start(self, manager: TransactionManager, row: bytes, number: int) -> str:
        def job(transaction: Transaction) -> str:
            if not transaction.claim(f"{row.decode()}/{number}", table=TABLE):
                return "had landed"
            add_one(row)(transaction)
            return "landed"

        try:
            answer = manager.run(job)
        except (PythiaError, StoreError) as error:
            answer = type(error).__name__
        self.answers.append(answer)
        return answer


def test_what_is_started_again_and_again_lands_once(installation: Installation, manager: TransactionManager) -> None:
    serving = installation.oracles[0]
    load = Restless(manager, threads=6)
    for name in ("b", "c", "d"):
        standby = installation.start(name, SHORT_LEASE_MS)
        wait_until(lambda: is_warm(standby.address), "the standby to be warm", WAIT_SECONDS_MAX)  # noqa: B023  # at once
        serving.end(signal.SIGKILL)
        standby.until_primary()
        landed = load.answers.count("landed")
        wait_until(lambda: load.answers.count("landed") > landed + 20, "more to land", WAIT_SECONDS_MAX)  # noqa: B023
        serving = standby
    keys = load.stop()
    snapshot = manager.snapshot()
    assert [int(snapshot.get(TABLE, b"row%d" % number)[COLUMN]) for number in range(len(keys))] == keys
    assert len(load.answers) > sum(keys), "some of it was started again"
    assert len(list(claims(manager, table=TABLE))) == sum(keys)


def test_a_transaction_in_flight_still_ends_by_its_own_conflict(
    installation: Installation, manager: TransactionManager
) -> None:
    transaction = manager.transaction()
    transaction.put(TABLE, b"r", {COLUMN: b"mine"})
    with manager.transaction() as rival:
        rival.put(TABLE, b"r", {COLUMN: b"theirs"})
    standby = installation.start("b", SHORT_LEASE_MS)
    installation.oracles[0].end(signal.SIGKILL)
    standby.until_primary()
    with pytest.raises(Conflict):
        transaction.commit()
    assert manager.snapshot().get(TABLE, b"r") == {COLUMN: b"theirs"}


def test_the_past_is_read_with_every_oracle_down(installation: Installation, manager: TransactionManager) -> None:
    with manager.transaction() as transaction:
        transaction.put(TABLE, b"r", {COLUMN: b"1"})
    committed = manager.outcome(transaction.start_timestamp)
    assert isinstance(committed, Committed)
    begun = manager.snapshot()
    standby = installation.start("b", SHORT_LEASE_MS)
    installation.oracles[0].end(signal.SIGTERM)
    standby.until_primary()
    standby.end(signal.SIGKILL)
    assert begun.get(TABLE, b"r") == {COLUMN: b"1"}
    stranger = dataclasses.replace(manager.settings, deadline_ms=2_000)
    with TransactionManager.connect(stranger) as other:
        assert other.snapshot(at=committed.commit_timestamp).get(TABLE, b"r") == {COLUMN: b"1"}
        with pytest.raises(NoPrimary):
            other.transaction()
        with pytest.raises(NoPrimary):
            other.snapshot(at=datetime.fromtimestamp(datetime.now(UTC).timestamp() + 3_600, UTC))


def test_a_handover_needs_a_standby_and_says_so(installation: Installation, manager: TransactionManager) -> None:
    alone = handover(installation)
    assert alone.returncode == 1
    assert "no standby answers" in alone.stderr
    with manager.transaction() as transaction:
        transaction.put(TABLE, b"r", {COLUMN: b"1"})


def serving_alone(installation: Installation) -> tuple[list[str], dict[str, str]]:
    """The command and its environment."""
    where = ["--root", installation.root, "--thrift", installation.services.thrift, "--listen", "127.0.0.1:0"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHIA_ZOOKEEPER"}
    return [sys.executable, "-m", "tso", "serve", "--alone", *where], environment


def until_primary(process: subprocess.Popen[str]) -> str:
    """Its address."""
    assert process.stdout is not None
    address = process.stdout.readline().split()[2]
    assert "primary" in process.stdout.readline()
    return address


def test_an_oracle_alone_serves_without_zookeeper_and_tolerates_no_second(installation: Installation) -> None:
    thrift, root = installation.services.thrift, installation.root
    serve, environment = serving_alone(installation)
    for _ in range(2):  # the second start finds a record, and nobody at its address
        with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, env=environment) as process:
            try:
                address = until_primary(process)
                refused = subprocess.run(
                    serve, capture_output=True, text=True, check=False, env=environment, timeout=WAIT_SECONDS_MAX
                )
                assert refused.returncode == 1
                assert f"serves at {address}" in refused.stderr
                with TransactionManager.connect(ClientSettings("", thrift, root, oracle=address)) as manager:
                    transaction = manager.transaction()
                    transaction.handle()  # so that its end is recorded though it writes nothing
                    committed = transaction.commit()
                    assert manager.outcome(transaction.start_timestamp) == committed
            finally:
                process.terminate()
                assert process.wait(WAIT_SECONDS_MAX) == 0
    drop_tables_of_one_alone(thrift, root)


def drop_tables_of_one_alone(thrift: str, root: str) -> None:
    with closing(HBaseCellStore(thrift)) as store:
        for purpose in ("epoch", "manifest", "catalog"):
            if system_table(root, purpose) in store.table_names():
                store.drop_table(system_table(root, purpose))


def test_an_oracle_alone_beside_which_another_was_started_ends(installation: Installation) -> None:
    """It stood still while that one looked whether it is there, and takes nothing back when it goes on."""
    thrift, root = installation.services.thrift, installation.root
    serve, environment = serving_alone(installation)
    with ExitStack() as ends:

        def start() -> subprocess.Popen[str]:
            pipe = subprocess.PIPE
            process = ends.enter_context(subprocess.Popen(serve, stdout=pipe, stderr=pipe, text=True, env=environment))
            ends.callback(process.kill)
            return process

        first = start()
        until_primary(first)
        first.send_signal(signal.SIGSTOP)
        second = start()
        address = until_primary(second)
        first.send_signal(signal.SIGCONT)
        _, said = first.communicate(timeout=WAIT_SECONDS_MAX)
        assert first.returncode == 1, said
        assert f"beside this one: it is at {address}, and this one ends" in said
        with TransactionManager.connect(ClientSettings("", thrift, root, oracle=address)) as manager:
            assert manager.snapshot().timestamp > 0
        second.terminate()
        second.communicate(timeout=WAIT_SECONDS_MAX)
    drop_tables_of_one_alone(thrift, root)
