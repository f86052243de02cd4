"""Questions that are answered on the spot: whoever asks many at once holds up nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wire import BeginReply, BeginRequest, MetricsReply, MetricsRequest, Overloaded, StatusRequest

if TYPE_CHECKING:
    from tests.unit.tso.conftest import House, RunHouse


def test_who_asks_without_end_is_told_to_wait_and_others_are_served(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        asker, other = await house.call("a"), await house.call("a")
        for _ in range(1_000):
            asker.send(MetricsRequest())
        assert isinstance(await other.ask(BeginRequest(1)), BeginReply)
        answers = [received[1] for received in [await asker.receive() for _ in range(1_000)] if received is not None]
        assert {type(answer) for answer in answers} == {MetricsReply, Overloaded}

    run_house(scenario)


def test_what_is_no_question_is_served_behind_any_number_of_them(run_house: RunHouse) -> None:
    async def scenario(house: House) -> None:
        await house.start_primary("a")
        caller = await house.call("a")
        for _ in range(100):
            caller.send(StatusRequest())
        number = caller.send(BeginRequest(1))
        answers = dict([received for received in [await caller.receive() for _ in range(101)] if received is not None])
        assert isinstance(answers[number], BeginReply)

    run_house(scenario)
