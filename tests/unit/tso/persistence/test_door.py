"""A pipeline's door: shut, opened again, and closed for good."""

from __future__ import annotations

import asyncio

from tso.persistence.door import Door


def test_it_is_finished_only_when_nothing_is_owed() -> None:
    async def scenario() -> None:
        door = Door()
        door.note(0)
        assert door.shut()
        assert not door.shut(), "it was shut before"
        door.note(1)
        assert not await door.nothing_owed(1)
        door.note(0)
        assert await door.nothing_owed(1)

    asyncio.run(scenario())


def test_opened_again_it_forgets_that_it_was_idle() -> None:
    async def scenario() -> None:
        door = Door()
        door.shut()
        door.note(0)
        door.open_again()
        assert door.is_open
        door.shut()
        assert not await door.nothing_owed(1)

    asyncio.run(scenario())


def test_what_has_ended_stays_so_and_lets_those_go_who_wait() -> None:
    async def scenario() -> None:
        door = Door()
        door.shut()
        door.note(1)
        door.end()
        assert not await door.nothing_owed(1), "what is owed is not answered any more"
        door.open_again()
        assert not door.shut()
        assert door.has_ended

    asyncio.run(scenario())
