"""What hooks are told of a transaction's life, in which order, what they may do, and what comes of their errors."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from client import (
    Aborted,
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
)
from tests.unit.client.conftest import Installation

A = b"f:a"


class Told(TransactionHooks):
    """Notes what it is told, with the status at that moment, and the threads it is told in."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.threads: set[int] = set()
        self.committed: list[Committed] = []

    def before_begin(self) -> None:
        self._note("before begin")

    def after_begin(self, transaction: Transaction) -> None:
        self._note(f"after begin, {transaction.status.value}")

    def before_commit(self, transaction: Transaction) -> None:
        self._note(f"before commit, {transaction.status.value}")

    def commit_step(self, step: CommitStep, start_timestamp: int) -> None:
        assert start_timestamp
        self._note(step.value)

    def after_commit(self, transaction: Transaction, committed: Committed) -> None:
        self._note(f"after commit, {transaction.status.value}")
        self.committed.append(committed)

    def before_rollback(self, transaction: Transaction) -> None:
        self._note(f"before rollback, {transaction.status.value}")

    def after_rollback(self, transaction: Transaction) -> None:
        self._note(f"after rollback, {transaction.status.value}")

    def _note(self, what: str) -> None:
        self.told.append(what)
        self.threads.add(threading.get_ident())


BEGUN = ["before begin", "after begin, active"]
STEPS = [step.value for step in CommitStep]
ROLLED_BACK = ["before rollback, active", "after rollback, aborted"]


def put(manager: TransactionManager, row: bytes, value: bytes) -> None:
    with manager.transaction() as transaction:
        transaction.put("t", row, {A: value})


def test_hooks_are_told_of_each_point_of_a_life_in_the_callers_thread(installation: Installation) -> None:
    hooks = Told()
    with installation.manager(hooks=hooks).transaction() as transaction:
        transaction.put("t", b"r", {A: b"1"})
        committed = transaction.commit()
    assert hooks.told == [*BEGUN, "before commit, active", *STEPS, "after commit, committed"]
    assert hooks.committed == [committed]
    assert hooks.threads == {threading.get_ident()}


def test_hooks_are_told_of_a_commit_of_nothing_and_of_rollbacks(installation: Installation) -> None:
    hooks = Told()
    manager = installation.manager(hooks=hooks)
    manager.transaction().commit()
    assert hooks.told == [*BEGUN, "before commit, active", "after commit, committed"]
    hooks.told.clear()
    manager.transaction().rollback()
    assert hooks.told == [*BEGUN, *ROLLED_BACK]
    hooks.told.clear()
    manager.snapshot()
    assert hooks.told == []


def test_a_commit_that_ends_in_abort_is_told_as_a_rollback(installation: Installation) -> None:
    hooks = Told()
    transaction = installation.manager(hooks=hooks).transaction()
    transaction.put("t", b"r", {A: b"lost"})
    put(installation.manager(), b"r", b"won")
    with pytest.raises(Conflict):
        transaction.commit()
    assert hooks.told == [*BEGUN, "before commit, active", "written", "sent", "after rollback, aborted"]


def test_hooks_learn_of_an_end_that_another_process_made(installation: Installation) -> None:
    hooks = Told()
    manager = installation.manager(hooks=hooks)
    handle = manager.transaction().handle()
    committed = installation.manager().resume(handle).commit()
    hooks.told.clear()
    assert manager.resume(handle).commit() == committed
    assert manager.resume(handle).rollback() == committed
    late = manager.resume(handle)
    late.put("t", b"r", {A: b"1"})
    with pytest.raises(InvalidRequest, match="committed by another process"):
        late.commit()
    commit, rollback = ["before commit, active"], ["before rollback, active"]
    assert hooks.told == [
        *commit, "after commit, committed", *rollback, "after commit, committed", *commit, "after commit, committed",
    ]  # fmt: skip
    assert hooks.committed == [committed] * 3


def test_hooks_of_an_unknown_end_are_told_once_it_is_settled(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = Told()
    manager = installation.manager(hooks=hooks)
    transaction = manager.transaction()
    transaction.put("t", b"r", {A: b"1"})

    def lose(*arguments: object, **named: object) -> None:
        raise OutcomeUnknown(transaction.start_timestamp, 0)

    with monkeypatch.context() as patched:
        patched.setattr(manager.oracle, "commit", lose)
        with pytest.raises(OutcomeUnknown):
            transaction.commit()
    assert hooks.told[len(BEGUN) :] == ["before commit, active", "written"]
    assert transaction.rollback() == Aborted()
    assert hooks.told[-2:] == ["before rollback, unknown", "after rollback, aborted"]


def test_what_a_hook_writes_before_the_commit_is_part_of_it(installation: Installation) -> None:
    class Audit(TransactionHooks):
        def before_commit(self, transaction: Transaction) -> None:
            transaction.put("t", b"audit", {A: b"%d" % len(list(transaction.scan("t")))})

    put(installation.manager(hooks=Audit()), b"r", b"1")
    installation.manager(hooks=Audit()).transaction().commit()
    assert dict(installation.manager().snapshot().scan("t")) == {b"audit": {A: b"2"}, b"r": {A: b"1"}}


class Raises(Told):
    """Raises at one point."""

    def __init__(self, point: str, error: BaseException) -> None:
        super().__init__()
        self._point = point
        self.error = error

    def _note(self, what: str) -> None:
        super()._note(what)
        if what.startswith(self._point):
            raise self.error


def errors_in(log: pytest.LogCaptureFixture) -> list[BaseException | None]:
    """Those that were logged with their traces."""
    return [record.exc_info[1] for record in log.records if record.exc_info is not None]


def test_an_error_before_the_begin_begins_nothing(installation: Installation) -> None:
    hooks = Raises("before begin", ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        installation.manager(hooks=hooks).transaction()
    assert hooks.told == ["before begin"]


@pytest.mark.parametrize("error", [ZeroDivisionError(), KeyboardInterrupt()])
def test_an_error_after_the_begin_rolls_back(installation: Installation, error: BaseException) -> None:
    hooks = Raises("after begin", error)
    with pytest.raises(type(error)):
        installation.manager(hooks=hooks).transaction()
    assert hooks.told == [*BEGUN, *ROLLED_BACK]


def test_an_error_after_the_begin_is_shown_though_the_rollback_fails(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    class Share(TransactionHooks):
        def after_begin(self, transaction: Transaction) -> None:
            transaction.handle()
            manager.oracle.close()
            raise ZeroDivisionError

    manager = installation.manager(hooks=Share())
    with pytest.raises(ZeroDivisionError):
        manager.transaction()
    assert "could not be rolled back now" in caplog.text


@pytest.mark.parametrize("written", [True, False])
def test_an_error_before_the_commit_aborts(installation: Installation, written: bool) -> None:
    error = ZeroDivisionError("no")
    hooks = Raises("before commit", error)
    transaction = installation.manager(hooks=hooks).transaction()
    if written:
        transaction.put("t", b"r", {A: b"1"})
    with pytest.raises(TransactionAborted, match=r"forbidden: the hook before_commit raised ZeroDiv") as caught:
        transaction.commit()
    assert caught.value.__cause__ is error
    assert not caught.value.retriable
    assert hooks.told == [*BEGUN, "before commit, active", *ROLLED_BACK]
    assert transaction.status is TransactionStatus.ABORTED
    assert installation.manager().snapshot().get("t", b"r") == {}


@pytest.mark.parametrize("point", [*STEPS, "after commit"])
def test_an_error_in_or_after_a_commit_is_logged_and_undoes_nothing(
    installation: Installation, caplog: pytest.LogCaptureFixture, point: str
) -> None:
    hooks = Raises(point, OSError("of the hook"))
    with installation.manager(hooks=hooks).transaction() as transaction:
        transaction.put("t", b"r", {A: b"1"})
        committed = transaction.commit()
    assert transaction.status is TransactionStatus.COMMITTED
    assert hooks.told == [*BEGUN, "before commit, active", *STEPS, "after commit, committed"]
    assert errors_in(caplog) == [hooks.error]
    assert installation.manager().outcome(transaction.start_timestamp) == committed
    assert installation.manager().snapshot().get("t", b"r") == {A: b"1"}


@pytest.mark.parametrize("point", ["before rollback", "after rollback"])
def test_an_error_around_a_rollback_is_logged_and_it_is_rolled_back(
    installation: Installation, caplog: pytest.LogCaptureFixture, point: str
) -> None:
    hooks = Raises(point, ZeroDivisionError())
    transaction = installation.manager(hooks=hooks).transaction()
    assert transaction.rollback() == Aborted()
    assert transaction.status is TransactionStatus.ABORTED
    assert errors_in(caplog) == [hooks.error]
    assert hooks.told == [*BEGUN, *ROLLED_BACK]


@pytest.mark.parametrize("end", [Transaction.commit, Transaction.rollback])
def test_a_hook_does_not_end_its_transaction(installation: Installation, end: Callable[[Transaction], object]) -> None:
    refused: list[str] = []

    class Ends(TransactionHooks):
        def after_begin(self, transaction: Transaction) -> None:
            self.try_it(transaction)

        def before_commit(self, transaction: Transaction) -> None:
            self.try_it(transaction)

        def before_rollback(self, transaction: Transaction) -> None:
            self.try_it(transaction)

        def try_it(self, transaction: Transaction) -> None:
            with pytest.raises(InvalidRequest, match="a hook does not end its transaction") as caught:
                end(transaction)
            refused.append(str(caught.value))

    manager = installation.manager(hooks=Ends())
    transaction = manager.transaction()
    transaction.put("t", b"r", {A: b"1"})
    assert isinstance(transaction.commit(), Committed)
    assert manager.transaction().rollback() == Aborted()
    assert len(refused) == 4


def test_a_commit_that_is_forbidden_rolls_back_and_says_why(installation: Installation) -> None:
    hooks = Told()
    transaction = installation.manager(hooks=hooks).transaction()
    reasons = [transaction.commit_forbidden]
    transaction.put("t", b"r", {A: b"1"})
    transaction.forbid_commit("the balance is negative")
    transaction.forbid_commit("and so is the mood")
    assert [*reasons, transaction.commit_forbidden] == [None, "the balance is negative"]
    transaction.put("t", b"r", {A: b"2"})
    assert transaction.get("t", b"r") == {A: b"2"}
    with pytest.raises(TransactionAborted, match="forbidden: the balance is negative") as caught:
        transaction.commit()
    assert not caught.value.retriable
    assert transaction.status is TransactionStatus.ABORTED
    assert hooks.told == [*BEGUN, *ROLLED_BACK]
    assert installation.manager().snapshot().get("t", b"r") == {}
    with pytest.raises(InvalidRequest, match="is aborted"):
        transaction.forbid_commit("too late")


def test_a_forbidden_commit_is_not_undone_by_a_savepoint_nor_run_again(manager: TransactionManager) -> None:
    runs: list[int] = []

    def forbid(transaction: Transaction) -> None:
        runs.append(transaction.start_timestamp)
        savepoint = transaction.savepoint()
        transaction.forbid_commit("no")
        transaction.rollback_to(savepoint)

    with pytest.raises(TransactionAborted, match="forbidden: no"):
        manager.run(forbid)
    assert len(runs) == 1


def test_a_hook_may_forbid_the_commit(installation: Installation) -> None:
    class Forbids(TransactionHooks):
        def before_commit(self, transaction: Transaction) -> None:
            transaction.forbid_commit("not on a Sunday")

    transaction = installation.manager(hooks=Forbids()).transaction()
    with pytest.raises(TransactionAborted, match="not on a Sunday"):
        transaction.commit()


def test_a_forbidden_shared_transaction_commits_nowhere(
    installation: Installation, manager: TransactionManager
) -> None:
    transaction = manager.transaction()
    other = installation.manager().resume(transaction.handle())
    transaction.forbid_commit("no")
    with pytest.raises(TransactionAborted, match="forbidden: no"):
        transaction.commit()
    with pytest.raises(TransactionAborted, match="rolled it back"):
        other.commit()


def test_a_shared_transaction_that_was_committed_elsewhere_is_said_to_be_whatever_was_forbidden_here(
    installation: Installation, manager: TransactionManager
) -> None:
    transaction = manager.transaction()
    committed = installation.manager().resume(transaction.handle()).commit()
    transaction.forbid_commit("too late")
    with pytest.raises(InvalidRequest, match=r"committed by another process that shares it, though.*too late"):
        transaction.commit()
    assert transaction.status is TransactionStatus.COMMITTED
    assert manager.outcome(transaction.start_timestamp) == committed


def test_a_forbidden_commit_that_cannot_be_settled_now_stays_forbidden(
    installation: Installation, manager: TransactionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = manager.transaction()
    transaction.handle()
    transaction.forbid_commit("no")

    def nobody(*arguments: object) -> None:
        raise NoPrimary(0, "nobody there")

    with monkeypatch.context() as patched:
        patched.setattr(manager.oracle, "abort", nobody)
        with pytest.raises(NoPrimary):
            transaction.commit()
    assert transaction.status is TransactionStatus.ACTIVE
    with pytest.raises(TransactionAborted, match="forbidden: no"):
        transaction.commit()
