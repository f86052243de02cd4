"""Transactions through the whole client and the real oracle, with the store failing where a test wants it to."""

from __future__ import annotations

import asyncio
import dataclasses
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from client import (
    Aborted,
    ClientSettings,
    CommitStep,
    Committed,
    Conflict,
    InvalidRequest,
    NoPrimary,
    OutcomeUnknown,
    Transaction,
    TransactionAborted,
    TransactionHooks,
    TransactionManager,
    TransactionStatus,
    TransactionTooLarge,
    Undecided,
)
from commit_table.columns import Timestamps
from commit_table.recorder import CommitRecorder
from store import Row
from store.faults import Fault
from testkit import small_limits
from tests.unit.client.conftest import SETTINGS, Installation

A = b"f:a"
WAIT_SECONDS_MAX = 20


def put(manager: TransactionManager, row: bytes, value: bytes) -> Committed:
    with manager.transaction() as transaction:
        transaction.put("t", row, {A: value})
        return transaction.commit()


def get(manager: TransactionManager, row: bytes) -> bytes | None:
    return manager.snapshot().get("t", row).get(A)


def test_a_transaction_reads_its_own_writes_and_nobody_else_does(manager: TransactionManager) -> None:
    put(manager, b"r", b"old")
    with manager.transaction() as transaction:
        transaction.put("t", b"r", {A: b"new"})
        transaction.put("t", b"s", {b"g:b": b"added"})
        assert transaction.get("t", b"r") == {A: b"new"}
        assert list(transaction.scan("t")) == [(b"r", {A: b"new"}), (b"s", {b"g:b": b"added"})]
        assert list(manager.snapshot().scan("t")) == [(b"r", {A: b"old"})]
    assert list(manager.snapshot().scan("t")) == [(b"r", {A: b"new"}), (b"s", {b"g:b": b"added"})]
    assert transaction.status is TransactionStatus.COMMITTED


def test_rows_are_read_together_with_what_the_transaction_wrote(manager: TransactionManager) -> None:
    with manager.transaction() as before:
        for row in (b"a", b"b", b"c", b"d"):
            before.put("t", row, {A: b"1", b"g:b": row})
    with manager.transaction() as transaction:
        transaction.put("t", b"b", {A: b"2"})
        transaction.delete("t", b"c")
        transaction.put("t", b"e", {A: b"3"})
        keys = [b"e", b"c", b"b", b"none", b"a", b"b"]
        found = transaction.get_many("t", keys)
        assert list(found) == [b"e", b"b", b"a"], "in the order asked for, once each, those that there are"
        assert found == {row: values for row in keys if (values := transaction.get("t", row))}
        assert transaction.get_many("t", keys, [A]) == {b"e": {A: b"3"}, b"b": {A: b"2"}, b"a": {A: b"1"}}
        assert transaction.get_many("t", [b"c", b"e"], own_writes="none") == {b"c": {A: b"1", b"g:b": b"c"}}


def test_many_rows_are_read_by_few_requests(installation: Installation, manager: TransactionManager) -> None:
    rows = [b"%05d" % number for number in range(1_200)]
    with manager.transaction() as before:
        for row in rows:
            before.put("t", row, {A: row})
    asked: list[int] = []
    get_many = installation.store.get_many

    def noting(table: str, keys: Sequence[bytes], *further: Any, **named: Any) -> dict[bytes, Row]:
        asked.append(len(keys))
        return get_many(table, keys, *further, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(installation.store, "get_many", noting)
        assert manager.snapshot().get_many("t", rows) == {row: {A: row} for row in rows}
    assert asked == [500, 500, 200]


def test_deletes_of_columns_and_rows(manager: TransactionManager) -> None:
    with manager.transaction() as transaction:
        transaction.put("t", b"r", {A: b"1", b"f:b": b"2", b"g:c": b"3"})
    before = manager.snapshot()
    with manager.transaction() as transaction:
        transaction.delete("t", b"r", [A])
        assert transaction.get("t", b"r") == {b"f:b": b"2", b"g:c": b"3"}
    with manager.transaction() as transaction:
        transaction.put("t", b"r", {b"f:d": b"4"})
        transaction.delete("t", b"r")
        assert transaction.get("t", b"r") == {}
    assert list(manager.snapshot().scan("t")) == []
    assert before.get("t", b"r") == {A: b"1", b"f:b": b"2", b"g:c": b"3"}


@pytest.mark.parametrize("value", [b"", b"\xc1", b"\xc1\xc1", bytes(1_000)])
def test_every_value_survives(manager: TransactionManager, value: bytes) -> None:
    put(manager, b"r", value)
    assert manager.snapshot().get("t", b"r") == {A: value}


def test_a_failing_block_rolls_back_and_keeps_its_error(manager: TransactionManager) -> None:
    transaction = manager.transaction()

    def fail() -> None:
        with transaction:
            transaction.put("t", b"r", {A: b"1"})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert transaction.status is TransactionStatus.ABORTED
    assert get(manager, b"r") is None


def test_a_transaction_is_used_once(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    transaction.commit()
    used: list[Callable[[], object]] = [
        transaction.commit,
        transaction.rollback,
        transaction.handle,
        lambda: transaction.get("t", b"r"),
        lambda: transaction.put("t", b"r", {A: b"1"}),
    ]
    for use in used:
        with pytest.raises(InvalidRequest, match="committed"):
            use()


def test_a_transaction_that_only_reads_commits_without_the_oracle(
    installation: Installation, manager: TransactionManager
) -> None:
    transaction = manager.transaction()
    installation.find_primary = lambda: None
    manager.oracle.close()
    assert transaction.commit() == Committed(transaction.snapshot_timestamp)


def test_a_table_made_anew_keeps_its_conflict_level_and_may_have_other_families(installation: Installation) -> None:
    first, second = installation.manager(), installation.manager()
    first.create_table("again", ["f"], conflict_level="row")
    put_into = second.transaction()
    put_into.put("again", b"r", {A: b"1"})
    put_into.rollback()
    first.drop_table("again")
    with pytest.raises(InvalidRequest, match="another conflict level"):
        first.create_table("again", ["f", "h"], conflict_level="cell")
    first.drop_table("again")
    first.create_table("again", ["f", "h"], conflict_level="row")
    with second.transaction() as transaction:
        transaction.put("again", b"r", {b"h:a": b"1"})
    assert first.snapshot().get("again", b"r") == {b"h:a": b"1"}


def test_a_conflict_leaves_nothing_and_names_its_reason(
    installation: Installation, manager: TransactionManager
) -> None:
    loser = manager.transaction()
    loser.put("t", b"r", {A: b"lost"})
    put(manager, b"r", b"won")
    with pytest.raises(Conflict, match="another transaction committed") as caught:
        loser.commit()
    assert caught.value.start_timestamp == loser.start_timestamp
    assert loser.status is TransactionStatus.ABORTED
    assert get(installation.manager(), b"r") == b"won"


def test_a_commit_that_was_on_its_way_when_the_transaction_began_is_a_conflict(
    installation: Installation, manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lies above the snapshot, and below the start timestamp: the snapshot decides."""
    recording, go_on = threading.Event(), threading.Event()
    record = CommitRecorder.record

    async def record_slowly(
        recorder: CommitRecorder, start_timestamps: Timestamps, commit_timestamps: Timestamps, epoch: int
    ) -> None:
        recording.set()
        assert await asyncio.to_thread(go_on.wait, WAIT_SECONDS_MAX)
        await record(recorder, start_timestamps, commit_timestamps, epoch)

    monkeypatch.setattr(CommitRecorder, "record", record_slowly)
    first = installation.manager().transaction()
    first.put("t", b"r", {A: b"first"})
    with ThreadPoolExecutor(1) as thread:
        committing = thread.submit(first.commit)
        assert recording.wait(WAIT_SECONDS_MAX)
        second = manager.transaction()
        go_on.set()
        committed = committing.result()
    assert second.snapshot_timestamp < committed.commit_timestamp < second.start_timestamp
    assert second.get("t", b"r") == {}
    second.put("t", b"r", {A: b"second"})
    with pytest.raises(Conflict):
        second.commit()
    assert get(manager, b"r") == b"first"


def test_a_store_that_fails_before_the_commit_aborts_it(
    installation: Installation, manager: TransactionManager
) -> None:
    transaction = manager.transaction()
    transaction.put("t", b"r", {A: b"1"})
    installation.store.plan("put", Fault.DONE)
    with pytest.raises(TransactionAborted, match="never taken up"):
        transaction.commit()
    assert get(manager, b"r") is None


def test_shadow_cells_that_fail_are_left_to_readers(installation: Installation, manager: TransactionManager) -> None:
    class LoseShadowCells(TransactionHooks):
        def commit_step(self, step: CommitStep, start_timestamp: int) -> None:
            if step is CommitStep.ANSWERED:
                installation.store.plan("put", Fault.LOST)

    put(installation.manager(hooks=LoseShadowCells()), b"r", b"1")
    assert manager.store.versions("t", b"r", b"f:\x00", limit=1) == []
    assert get(manager, b"r") == b"1"
    assert manager.store.versions("t", b"r", b"f:\x00", limit=1) != []


def test_no_primary_is_said_after_the_deadline(empty_installation: Installation) -> None:
    impatient = ClientSettings(zookeeper="127.0.0.1:1", thrift="127.0.0.1:1", deadline_ms=50)
    with pytest.raises(NoPrimary, match="no oracle is primary") as caught:
        empty_installation.manager(settings=impatient).transaction()
    assert caught.value.waited_ms >= 0
    empty_installation.find_primary = lambda: "127.0.0.1:1"
    with pytest.raises(NoPrimary, match="no connection"):
        empty_installation.manager(settings=impatient).transaction()


@pytest.mark.parametrize("talks", ["never", "slowly"])
def test_a_call_ends_at_its_deadline_whatever_the_oracle_does(empty_installation: Installation, talks: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    inside: list[socket.socket] = []

    def dribble() -> None:
        while True:
            try:
                connection, _ = listener.accept()
                inside.append(connection)
                while talks == "slowly":
                    connection.sendall(b"\0")
                    time.sleep(0.02)
            except OSError:
                return

    thread = threading.Thread(target=dribble, daemon=True)
    thread.start()
    empty_installation.find_primary = lambda: f"127.0.0.1:{listener.getsockname()[1]}"
    impatient = dataclasses.replace(SETTINGS, deadline_ms=200, request_timeout_ms=60_000)
    with pytest.raises(NoPrimary):
        empty_installation.manager(settings=impatient).transaction()
    listener.shutdown(socket.SHUT_RDWR)  # wakes who waits in accept; closing alone does not
    thread.join(WAIT_SECONDS_MAX)
    assert not thread.is_alive()
    for connection in (listener, *inside):
        connection.close()


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:port", "[::1:1", ":"])
def test_an_address_that_cannot_be_is_no_primary(empty_installation: Installation, address: str) -> None:
    empty_installation.find_primary = lambda: address
    impatient = dataclasses.replace(SETTINGS, deadline_ms=500)
    with pytest.raises(NoPrimary, match="no connection"):
        empty_installation.manager(settings=impatient).transaction()


def test_who_finds_no_primary_is_told_where_it_looked(empty_installation: Installation) -> None:
    asked = threading.Event()
    impatient = dataclasses.replace(SETTINGS, root="/other", deadline_ms=100, request_timeout_ms=60_000)

    def hang() -> None:
        asked.wait(WAIT_SECONDS_MAX)

    for find, said in (
        (hang, "ZooKeeper at {} has not told"),
        (lambda: None, "installation /other in ZooKeeper at {}"),
    ):
        empty_installation.find_primary = find
        with pytest.raises(NoPrimary, match=said.format(SETTINGS.zookeeper)):
            empty_installation.manager(settings=impatient).transaction()
    asked.set()


def test_what_was_wrong_before_there_was_no_primary_is_told_once(empty_installation: Installation) -> None:
    found = iter(["127.0.0.1:port"])
    empty_installation.find_primary = lambda: next(found, None)
    impatient = dataclasses.replace(SETTINGS, deadline_ms=400)
    with pytest.raises(NoPrimary) as caught:
        empty_installation.manager(settings=impatient).transaction()
    assert str(caught.value).count("no oracle is primary now") == 1
    assert "no connection to the primary at 127.0.0.1:port" in str(caught.value)


def test_a_standby_sends_the_client_on_to_the_primary(installation: Installation) -> None:
    primary = installation.find_primary()
    standby = installation.oracle("b")
    installation.find_primary = lambda: standby.address
    manager = installation.manager()
    put(manager, b"r", b"1")
    assert get(manager, b"r") == b"1"
    assert primary != standby.address


def test_run_gives_up_after_its_attempts_and_never_on_other_errors(
    manager: TransactionManager, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="client.transactions.reruns")
    calls: list[int] = []

    def always_conflicts(transaction: Transaction) -> None:
        calls.append(transaction.start_timestamp)
        put(manager, b"r", b"rival")
        transaction.put("t", b"r", {A: b"mine"})

    with pytest.raises(Conflict):
        manager.run(always_conflicts, attempts_max=3)
    assert len(calls) == len(set(calls)) == 3
    assert [message.partition(":")[0] for message in caplog.messages] == ["attempt 1", "attempt 2"]
    assert "another transaction committed" in caplog.text
    with pytest.raises(ZeroDivisionError):
        manager.run(lambda transaction: 1 // 0)
    with pytest.raises(InvalidRequest, match="attempts_max"):
        manager.run(always_conflicts, attempts_max=0)


def test_a_write_set_beyond_the_oracles_limit_is_refused(empty_installation: Installation) -> None:
    oracle = empty_installation.oracle(limits=small_limits(conflict_map_entries_max=100))
    oracle.await_primary()
    empty_installation.find_primary = lambda: oracle.address
    manager = empty_installation.manager()
    manager.create_table("t", ["f"])
    transaction = manager.transaction()
    for number in range(51):
        transaction.put("t", b"%d" % number, {A: b"1"})
    with pytest.raises(TransactionTooLarge, match="split"):
        transaction.commit()
    put(manager, b"r", b"1")


def test_somebody_elses_abort_is_for_good(manager: TransactionManager) -> None:
    transaction = manager.transaction()
    transaction.put("t", b"r", {A: b"1"})
    assert manager.outcome(transaction.start_timestamp) == Undecided()
    assert manager.abort(transaction.start_timestamp) == Aborted()
    with pytest.raises(TransactionAborted, match="aborted through the oracle"):
        transaction.commit()
    assert manager.outcome(transaction.start_timestamp) == Aborted()
    committed = put(manager, b"r", b"2")
    assert manager.abort(committed_start(manager)) == committed


def committed_start(manager: TransactionManager) -> int:
    return manager.store.versions("t", b"r", A, limit=1)[0].timestamp


@pytest.mark.parametrize("wrong", [0, -1, 2**63, "1"])
def test_what_is_no_transaction_id_is_refused(manager: TransactionManager, wrong: int) -> None:
    for ask in (manager.outcome, manager.abort):
        with pytest.raises(InvalidRequest, match="start timestamp"):
            ask(wrong)


class CutAfterSending:
    """A door before the primary that passes requests on and, once armed, closes instead of answering a commit."""

    def __init__(self, primary: str) -> None:
        host, _, port = primary.rpartition(":")
        self._primary = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.armed = False
        self.deliver = True
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                inside, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(inside,), daemon=True).start()

    def _serve(self, inside: socket.socket) -> None:
        # Who was told of this door may come in as the test ends, when nobody is behind it any more.
        with inside, suppress(ConnectionRefusedError), socket.create_connection(self._primary) as outside:
            while request := inside.recv(2**16):
                if self.armed and not self.deliver:
                    return
                outside.sendall(request)
                answer = outside.recv(2**16)
                if self.armed:
                    return
                inside.sendall(answer)


@pytest.mark.parametrize("delivered", [True, False])
def test_a_lost_answer_to_a_commit_ends_in_the_truth(installation: Installation, delivered: bool) -> None:
    primary = installation.find_primary()
    assert primary is not None
    door = CutAfterSending(primary)
    door.deliver = delivered
    installation.find_primary = lambda: primary if door.armed else door.address
    manager = installation.manager()
    transaction = manager.transaction()
    transaction.put("t", b"r", {A: b"1"})
    door.armed = True
    committed = transaction.commit()
    assert get(manager, b"r") == b"1"
    assert manager.outcome(transaction.start_timestamp) == committed
    door.close()


def test_an_outcome_that_stays_unknown_is_said_at_the_deadline_and_settled_later(installation: Installation) -> None:
    primary = installation.find_primary()
    assert primary is not None
    door = CutAfterSending(primary)
    installation.find_primary = lambda: door.address
    impatient = ClientSettings(zookeeper=SETTINGS.zookeeper, thrift=SETTINGS.thrift, deadline_ms=300)
    manager = installation.manager(settings=impatient)
    transaction = manager.transaction()
    transaction.put("t", b"r", {A: b"1"})
    door.armed = True
    with pytest.raises(OutcomeUnknown) as caught:
        transaction.commit()
    with pytest.raises(OutcomeUnknown):
        transaction.get("t", b"r")
    assert isinstance(manager.outcome(caught.value.start_timestamp), Committed)
    installation.find_primary = lambda: primary
    assert isinstance(transaction.rollback(), Committed)
    assert transaction.status is TransactionStatus.COMMITTED
    assert get(manager, b"r") == b"1"
    door.close()
