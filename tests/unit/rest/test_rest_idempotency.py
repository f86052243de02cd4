"""The same answer for the same Idempotency-Key."""

from __future__ import annotations

import asyncio

import pytest

from rest.idempotency import Answer, IdempotentAnswers
from rest.problems import Problem
from tests.unit.rest.asking import begin, commit, put, refused
from tests.unit.rest.conftest import Serve, Served

ANSWER = Answer(200, b"{}")


def answers(keys_max: int = 10, bytes_max: int = 100_000) -> IdempotentAnswers:
    return IdempotentAnswers(keys_max, bytes_max, retry_after_ms=5)


class Work:
    """Counts how often it is done; ``errors`` come first."""

    def __init__(self, *errors: Exception, size_bytes: int = 2) -> None:
        self.done = 0
        self._errors = list(errors)
        self._size_bytes = size_bytes
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self) -> Answer:
        self.done += 1
        await self.gate.wait()
        if self._errors:
            raise self._errors.pop(0)
        return Answer(200, b"x" * self._size_bytes)


def test_work_is_done_once_for_a_key() -> None:
    async def scenario() -> None:
        memory, work = answers(), Work()
        assert await memory.once("", "k", b"r", work) == await memory.once("", "k", b"r", work)
        assert work.done == 1
        await memory.once("", "other", b"r", work)
        assert work.done == 2

    asyncio.run(scenario())


def test_a_key_is_not_for_two_requests() -> None:
    async def scenario() -> None:
        memory, work = answers(), Work()
        await memory.once("", "k", b"r", work)
        with pytest.raises(Problem, match="another path or body"):
            await memory.once("", "k", b"other", work)
        assert work.done == 1

    asyncio.run(scenario())


def test_who_comes_while_it_is_being_done_waits_for_the_same_answer() -> None:
    async def scenario() -> None:
        memory, work = answers(), Work()
        work.gate.clear()
        both = [asyncio.create_task(memory.once("", "k", b"r", work)) for _ in range(2)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        work.gate.set()
        first, second = await asyncio.gather(*both)
        assert first is second
        assert work.done == 1

    asyncio.run(scenario())


def test_work_that_failed_is_done_again() -> None:
    async def scenario() -> None:
        memory, work = answers(), Work(Problem("overloaded", "too much"))
        both = [asyncio.create_task(memory.once("", "k", b"r", work)) for _ in range(2)]
        first, second = await asyncio.gather(*both, return_exceptions=True)
        assert isinstance(first, Problem)
        assert isinstance(second, Answer)
        assert work.done == 2
        assert len(memory) == 1

    asyncio.run(scenario())


def test_what_is_remembered_is_bounded_by_number_and_bytes() -> None:
    async def scenario() -> None:
        memory = answers(keys_max=3)
        for number in range(10):
            await memory.once("", f"k{number}", b"r", Work())
            assert len(memory) <= 3
        small = answers(bytes_max=5_000)
        for number in range(10):
            await small.once("", f"k{number}", b"r", Work(size_bytes=1_000))
        assert len(small) == 3
        last = Work()
        await small.once("", "k9", b"r", last)
        assert last.done == 0, "the oldest go first"

    asyncio.run(scenario())


@pytest.mark.parametrize("bounds", [{"keys_max": 4}, {"bytes_max": 6_000}])
def test_nobodys_answers_go_for_what_another_asks(bounds: dict[str, int]) -> None:
    async def scenario() -> None:
        memory, mine = answers(**bounds), Work(size_bytes=1_000)
        await memory.once("me", "k", b"r", mine)
        for number in range(10):
            await memory.once("another", f"k{number}", b"r", Work(size_bytes=1_000))
        await memory.once("me", "k", b"r", mine)
        assert mine.done == 1
        assert len(memory) <= 4
        await memory.once("another", "k", b"r", Work())
        assert mine.done == 1, "a key is its caller's"

    asyncio.run(scenario())


def test_keys_under_way_are_bounded_too() -> None:
    async def scenario() -> None:
        memory, work = answers(keys_max=1), Work()
        work.gate.clear()
        first = asyncio.create_task(memory.once("", "k", b"r", work))
        await asyncio.sleep(0)
        with pytest.raises(Problem, match="under way"):
            await memory.once("", "k2", b"r", work)
        work.gate.set()
        await first

    asyncio.run(scenario())


def test_a_begin_and_a_commit_with_a_key_get_the_same_answer(served: Served) -> None:
    id = begin(served.client, **{"Idempotency-Key": "begin-1"})
    assert begin(served.client, **{"Idempotency-Key": "begin-1"}) == id
    assert begin(served.client, **{"Idempotency-Key": "begin-2"}) != id
    put(served.client, id, "idempotent", "1")
    both = [commit(served.client, id, **{"Idempotency-Key": "commit-1"}) for _ in range(2)]
    assert both[0].content == both[1].content
    assert both[0].status_code == both[1].status_code == 200
    oracle = [served.client.post("/v1/oracle/begin", headers={"Idempotency-Key": "o"}).json() for _ in range(2)]
    assert oracle[0] == oracle[1]
    reused = served.client.post("/v1/oracle/begin", headers={"Idempotency-Key": "o"}, json={"count": 2})
    assert refused(reused) == (422, "idempotency-key-reused")


def test_a_refusal_for_good_is_remembered_with_its_kind(served: Served) -> None:
    first, second = begin(served.client), begin(served.client)
    for id in (first, second):
        put(served.client, id, "idempotent-conflict", id)
    commit(served.client, first)
    both = [commit(served.client, second, **{"Idempotency-Key": "refused"}) for _ in range(2)]
    assert [refused(one) for one in both] == [(409, "conflict")] * 2


def test_a_refusal_for_now_is_not_remembered(serve_rest: Serve) -> None:
    client = serve_rest(transactions_max=1).client
    held = begin(client)
    key = {"Idempotency-Key": "later"}
    assert refused(client.post("/v1/transactions", headers=key)) == (429, "too-many-transactions")
    client.delete(f"/v1/transactions/{held}")
    assert begin(client, **key) == begin(client, **key)
