"""What errors carry from process to process, and that they hold nothing of what failed."""

from __future__ import annotations

import copy
import gc
import pickle
import time
import tomllib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import pytest

import client
from client import (
    Conflict,
    NoPrimary,
    OutcomeUnknown,
    PythiaError,
    StoreError,
    TableFenced,
    Transaction,
    TransactionAborted,
    TransactionHooks,
    TransactionManager,
)
from client.vacuum.run import HorizonUnknown
from tests.imports import ROOT
from tests.unit.client.conftest import Installation
from tests.unit.client.transacting import open_with, put

SAMPLES: dict[type[Exception], tuple[object, ...]] = {
    NoPrimary: (250, "nobody answers"),
    OutcomeUnknown: (7, 250),
    TableFenced: (7, "t", 9),
}

GONE_SECONDS_MAX: Final = 10.0


def errors() -> Iterator[Exception]:
    handed_out = [getattr(client, name) for name in client.__all__]
    for kind in [*handed_out, HorizonUnknown]:
        if isinstance(kind, type) and issubclass(kind, PythiaError | StoreError):
            aborted = kind not in SAMPLES and issubclass(kind, TransactionAborted)
            yield kind(*((7, "why") if aborted else SAMPLES.get(kind, ("why",))))


@pytest.mark.parametrize("error", list(errors()), ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    "sent", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy], ids=["pickled", "copy", "deep"]
)
def test_an_error_is_the_same_in_another_process(error: Exception, sent: Callable[[Exception], Exception]) -> None:
    error.retriable = not error.retriable  # type: ignore[attr-defined]  # a commit that was forbidden has its own
    arrived = sent(error)
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert vars(arrived) == vars(error)


def test_no_error_is_of_a_module_that_is_compiled() -> None:
    """There it would have no ``__dict__``, and could not be brought to another process, or copied."""
    compiled = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pythia"]["compiled"]
    modules = {module.removesuffix(".py").replace("/", ".") for module in compiled}
    assert modules, "some are compiled"
    assert {type(error).__module__ for error in errors()} & modules == set()


class Objecting(TransactionHooks):
    def before_commit(self, transaction: Transaction) -> None:
        raise ValueError


def in_conflict(manager: TransactionManager) -> Transaction:
    transaction = open_with(manager, b"r", b"mine")
    put(manager, b"r", b"theirs")
    return transaction


def aborted_by_its_id(manager: TransactionManager) -> Transaction:
    transaction = open_with(manager, b"r", b"mine")
    manager.abort(transaction.start_timestamp)
    return transaction


def fenced(manager: TransactionManager) -> Transaction:
    transaction = open_with(manager, b"r", b"mine")
    manager.fence("t")
    return transaction


def forbidden(manager: TransactionManager) -> Transaction:
    transaction = open_with(manager, b"r", b"mine")
    transaction.forbid_commit("why")
    return transaction


def are_gone(held: Sequence[weakref.ref[Transaction]]) -> bool:
    """Whether nobody holds them; the thread of the heartbeats does so for the moment in which it looks at them."""
    ends_s = time.monotonic() + GONE_SECONDS_MAX
    while any(each() is not None for each in held) and time.monotonic() < ends_s:
        time.sleep(0.01)
    return all(each() is None for each in held)


@pytest.mark.parametrize(
    ("prepared", "hooks"),
    [
        (in_conflict, None),
        (aborted_by_its_id, None),
        (fenced, None),
        (forbidden, None),
        (lambda manager: open_with(manager, b"r", b"mine"), Objecting()),
    ],
    ids=["in conflict", "aborted by its id", "fenced", "forbidden", "a hook objects"],
)
def test_a_transaction_that_could_not_commit_is_gone_with_its_error(
    installation: Installation, prepared: Callable[[TransactionManager], Transaction], hooks: TransactionHooks | None
) -> None:
    manager = installation.manager(hooks=hooks)
    gc.disable()  # in a program of few and large values it runs seldom
    try:
        transaction = prepared(manager)
        held = weakref.ref(transaction)
        with pytest.raises(TransactionAborted):
            transaction.commit()
        del transaction
        assert are_gone([held])
    finally:
        gc.enable()


def test_an_attempt_that_conflicted_is_gone_when_the_next_one_runs(manager: TransactionManager) -> None:
    held: list[weakref.ref[Transaction]] = []

    def conflicts(transaction: Transaction) -> None:
        assert are_gone(held)
        held.append(weakref.ref(transaction))
        transaction.put("t", b"r", {b"f:a": b"mine"})
        put(manager, b"r", b"theirs")

    gc.disable()
    try:
        with pytest.raises(Conflict):
            manager.run(conflicts, attempts_max=3)
    finally:
        gc.enable()
