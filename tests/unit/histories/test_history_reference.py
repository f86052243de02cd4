"""The checker against a reference: what is snapshot isolated passes, and whatever is then broken is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from histories import History, Key, Kind, Operation, OperationKind, Outcome, RecordedTransaction, check
from tests.unit.histories.made_up import committed, history
from tests.unit.histories.reference import Engine, random_choices

STEPS = 400
CHOICES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 39), st.integers(0, 3)), max_size=150)
SEEDS = st.integers(0, 2**32)


@given(CHOICES, st.booleans())
def test_what_the_reference_did_passes(choices: list[tuple[int, int, int]], lossy: bool) -> None:
    engine = Engine(lossy=lossy)
    recorded = engine.run(choices)
    assert check(recorded) == []
    # A commit that was decided and not yet answered is in no history, and in the tables.
    if not any(process.commit for process in engine.processes if process.stage.name == "DECIDED"):
        assert check(recorded, engine.final_state()) == []


@given(SEEDS, st.booleans())
def test_long_runs_of_the_reference_pass(seed: int, lossy: bool) -> None:
    choices = random_choices(seed, STEPS) + [(process, 7, 0) for _ in range(6) for process in range(5)]
    engine = Engine(lossy=lossy)
    recorded = engine.run(choices)
    ids = {each.id for each in recorded.transactions}
    if all(process.start in ids for process in engine.processes):
        assert check(recorded, engine.final_state()) == []
    assert check(recorded) == []


Mutation = Callable[[History], Iterator[History]]
"""All the ways to break a history in one way."""


def _with(history_: History, position: int, transaction: RecordedTransaction) -> History:
    transactions = list(history_.transactions)
    transactions[position] = transaction
    return replace(history_, transactions=tuple(transactions))


def _versions(history_: History) -> dict[Key, list[tuple[int, int | None]]]:
    versions: dict[Key, list[tuple[int, int | None]]] = {}
    for each in history_.transactions:
        for key, operation in each.last_writes().items():
            if each.commit_timestamp is not None:
                versions.setdefault(key, []).append((each.commit_timestamp, operation.value))
    return {key: sorted(found) for key, found in versions.items()}


def _external_reads(history_: History) -> Iterator[tuple[int, RecordedTransaction, int, Operation]]:
    for position, each in enumerate(history_.transactions):
        first = each.external_reads()
        for at, operation in enumerate(each.operations):
            if first.get(operation.key) is operation:
                yield position, each, at, operation


def _reading(history_: History, position: int, at: int, value: int | None) -> History:
    transaction = history_.transactions[position]
    operations = list(transaction.operations)
    operations[at] = replace(operations[at], value=value)
    return _with(history_, position, replace(transaction, operations=tuple(operations)))


def read_another_version(history_: History) -> Iterator[History]:
    versions = _versions(history_)
    for position, _, at, operation in _external_reads(history_):
        for value in {value for _, value in versions.get(operation.key, ())} - {operation.value}:
            yield _reading(history_, position, at, value)


def read_nothing(history_: History) -> Iterator[History]:
    for position, _, at, operation in _external_reads(history_):
        if operation.value is not None:
            yield _reading(history_, position, at, None)


def read_an_aborted_write(history_: History) -> Iterator[History]:
    aborted = [each for each in history_.transactions if each.outcome is Outcome.ABORTED]
    values = [
        (each.id, key, write.value) for each in aborted for key, write in each.last_writes().items() if write.value
    ]
    for position, reader, at, operation in _external_reads(history_):
        for writer, key, value in values:
            if key == operation.key and writer != reader.id:
                yield _reading(history_, position, at, value)


def read_own_write_wrongly(history_: History) -> Iterator[History]:
    for position, each in enumerate(history_.transactions):
        written: set[Key] = set()
        for at, operation in enumerate(each.operations):
            if operation.kind is OperationKind.WRITE:
                written.add(operation.key)
            elif operation.key in written:
                yield _reading(history_, position, at, None if operation.value else 1)


def lose_a_transaction_that_was_read(history_: History) -> Iterator[History]:
    read = {(operation.key, operation.value) for _, _, _, operation in _external_reads(history_) if operation.value}
    for each in history_.transactions:
        if any((key, write.value) in read for key, write in each.last_writes().items()):
            yield replace(history_, transactions=tuple(other for other in history_.transactions if other is not each))


def call_a_transaction_aborted_that_was_read(history_: History) -> Iterator[History]:
    read = {(each.key, each.value) for _, _, _, each in _external_reads(history_) if each.value}
    for position, each in enumerate(history_.transactions):
        if any((key, write.value) in read for key, write in each.last_writes().items()):
            yield _with(history_, position, replace(each, outcome=Outcome.ABORTED, commit_timestamp=None))


def swap_commits_of_two_writers_of_a_key(history_: History) -> Iterator[History]:
    writers = [
        (position, each)
        for position, each in enumerate(history_.transactions)
        if each.outcome is Outcome.COMMITTED and not each.is_read_only
    ]
    for (one, first), (other, second) in combinations(writers, 2):
        if first.last_writes().keys() & second.last_writes().keys():
            swapped = _with(history_, one, replace(first, commit_timestamp=second.commit_timestamp))
            yield _with(swapped, other, replace(second, commit_timestamp=first.commit_timestamp))


def begin_before_what_was_overwritten(history_: History) -> Iterator[History]:
    versions = _versions(history_)
    for position, each in enumerate(history_.transactions):
        if each.outcome is Outcome.COMMITTED:
            for key in each.last_writes():
                for commit, _ in versions[key]:
                    if commit <= each.snapshot:
                        yield _with(history_, position, replace(each, snapshot=commit - 1))


def use_a_timestamp_again(history_: History) -> Iterator[History]:
    ids = [each.id for each in history_.transactions]
    for position, each in enumerate(history_.transactions):
        if each.outcome is Outcome.COMMITTED and not each.is_read_only:
            for identity in ids:
                yield _with(history_, position, replace(each, commit_timestamp=identity))


def miss_an_acknowledged_commit(history_: History) -> Iterator[History]:
    for each in history_.transactions:
        answered = each.real_time.commit_answered_ns if each.real_time else None
        if answered is None or each.commit_timestamp is None or each.is_read_only:
            continue
        for position, later in enumerate(history_.transactions):
            if later.real_time and later.real_time.begin_sent_ns > answered:
                snapshot = each.commit_timestamp - 1
                commit = snapshot if later.is_read_only and later.commit_timestamp else later.commit_timestamp
                yield _with(history_, position, replace(later, snapshot=snapshot, commit_timestamp=commit))


MUTATIONS: list[Mutation] = [
    read_another_version,
    read_nothing,
    read_an_aborted_write,
    read_own_write_wrongly,
    lose_a_transaction_that_was_read,
    call_a_transaction_aborted_that_was_read,
    swap_commits_of_two_writers_of_a_key,
    begin_before_what_was_overwritten,
    use_a_timestamp_again,
    miss_an_acknowledged_commit,
]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
@given(seed=SEEDS, data=st.data())
def test_whatever_is_broken_is_found(mutation: Mutation, seed: int, data: st.DataObject) -> None:
    recorded = Engine().run(random_choices(seed, STEPS))
    broken = list(mutation(recorded))
    if broken:
        assert check(data.draw(st.sampled_from(broken), label="broken"))


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_every_mutation_finds_something_to_break(mutation: Mutation) -> None:
    assert any(any(mutation(Engine().run(random_choices(seed, STEPS)))) for seed in range(3))


@given(SEEDS, st.data())
def test_a_wrong_final_state_is_found(seed: int, data: st.DataObject) -> None:
    engine = Engine()
    recorded = engine.run(random_choices(seed, STEPS))
    state = {key: versions[-1][1] for key, versions in _versions(recorded).items()}
    assert check(recorded, state) == []
    key = data.draw(st.sampled_from(sorted(state, key=str)))
    wrong = data.draw(st.sampled_from([None, 1, *[value for _, value in _versions(recorded)[key]]]))
    if wrong != state[key]:
        assert [found.kind for found in check(recorded, state | {key: wrong})] == [Kind.FINAL_STATE]


TIMES = st.integers(1, 12)
OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["r", "w"]), st.sampled_from(["x", "y"]), st.integers(0, 4)), max_size=3
)


@given(st.lists(st.tuples(TIMES, TIMES, TIMES, OPERATIONS), max_size=4))
def test_any_small_history_is_judged_as_the_definition_says(
    drawn: list[tuple[int, int, int, list[tuple[str, str, int]]]],
) -> None:
    """Mostly nonsense, judged by the definition taken literally: every transaction set against every other."""
    transactions = []
    for number, (start, before, after, operations) in enumerate(drawn):
        text = ", ".join(
            f"{kind} {key} {(10 * number + 1 + at if kind == 'w' else 10 * (value - 1) + 1 if value else '-')}"
            for at, (kind, key, value) in enumerate(operations)
        )
        writes = any(kind == "w" for kind, _, _ in operations)
        snapshot = max(0, start - before)
        transactions.append(committed(start, snapshot, start + after if writes else snapshot, text))
    assert bool(check(history(*transactions))) == _violates(transactions)


def _violates(transactions: list[RecordedTransaction]) -> bool:
    writers = [each for each in transactions if not each.is_read_only]
    stamps = [each.id for each in transactions] + [each.commit_timestamp for each in writers]
    if len(set(stamps)) < len(stamps) or any(each.snapshot >= each.id for each in transactions):
        return True
    return any(_overlap(one, other) for one, other in combinations(writers, 2)) or any(
        _reads_wrongly(each, writers) for each in transactions
    )


def _overlap(one: RecordedTransaction, other: RecordedTransaction) -> bool:
    assert one.commit_timestamp is not None
    assert other.commit_timestamp is not None
    shared = one.last_writes().keys() & other.last_writes().keys()
    return bool(shared) and one.snapshot < other.commit_timestamp and other.snapshot < one.commit_timestamp


def _reads_wrongly(reader: RecordedTransaction, writers: list[RecordedTransaction]) -> bool:
    for at, operation in enumerate(reader.operations):
        if operation.kind is OperationKind.READ:
            own = [each.value for each in reader.operations[:at]
                   if each.kind is OperationKind.WRITE and each.key == operation.key]  # fmt: skip
            theirs = [
                (writer.commit_timestamp, writer.last_writes()[operation.key].value)
                for writer in writers
                if operation.key in writer.last_writes() and (writer.commit_timestamp or 0) <= reader.snapshot
            ]
            expected = own[-1] if own else max(theirs, key=lambda version: version[0] or 0)[1] if theirs else None
            if operation.value != expected:
                return True
    return False
