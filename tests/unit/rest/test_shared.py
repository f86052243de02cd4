"""One answer for all who ask the same at about the same time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from rest.shared import Shared
from tests.unit.rest.conftest import Serve

LONG_MS = 600_000


class Asked:
    """Answers how often it was asked, when the test lets it go on."""

    def __init__(self) -> None:
        self.times = 0
        self.goes_on = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.times += 1
        now = self.times
        await self.goes_on.wait()
        if self.error is not None:
            raise self.error
        return now


def test_who_asks_meanwhile_or_soon_after_gets_the_same_answer() -> None:
    async def scenario() -> None:
        asked = Asked()
        shared = Shared(asked, LONG_MS)
        waiting = [asyncio.create_task(shared.get()) for _ in range(5)]
        await asyncio.sleep(0)
        asked.goes_on.set()
        assert await asyncio.gather(*waiting) == [1] * 5
        assert await shared.get() == 1

    asyncio.run(scenario())


def test_an_answer_grows_old() -> None:
    async def scenario() -> None:
        asked = Asked()
        asked.goes_on.set()
        shared = Shared(asked, 0)
        assert [await shared.get(), await shared.get()] == [1, 2]

    asyncio.run(scenario())


def test_an_error_is_told_to_all_who_wait_and_not_kept() -> None:
    async def scenario() -> None:
        asked = Asked()
        asked.error = ValueError("now")
        shared = Shared(asked, LONG_MS)
        waiting = [asyncio.create_task(shared.get()) for _ in range(3)]
        await asyncio.sleep(0)
        asked.goes_on.set()
        assert await asyncio.gather(*waiting, return_exceptions=True) == [asked.error] * 3
        asked.error = None
        assert await shared.get() == 2

    asyncio.run(scenario())


def test_who_waits_no_more_takes_the_answer_from_nobody() -> None:
    async def scenario() -> None:
        asked = Asked()
        shared = Shared(asked, LONG_MS)
        gone, patient = asyncio.create_task(shared.get()), asyncio.create_task(shared.get())
        await asyncio.sleep(0)
        gone.cancel()
        asked.goes_on.set()
        assert await patient == 1
        with pytest.raises(asyncio.CancelledError):
            await gone

    asyncio.run(scenario())


@pytest.mark.parametrize("path", ["/v1/health/ready", "/v1/status", "/metrics"])
def test_the_oracle_beside_is_not_asked_once_for_each_who_asks(
    serve_rest: Serve, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    rest = serve_rest()
    own = rest.app.state.services._own
    asked, submit = list[object](), own.submit

    def counted(ticket: object) -> None:
        asked.append(ticket)
        submit(ticket)

    monkeypatch.setattr(own, "submit", counted)
    monkeypatch.setattr("rest.shared.time", SimpleNamespace(monotonic=lambda: 7.0))
    assert [rest.client.get(path).status_code for _ in range(20)] == [200] * 20
    assert len(asked) == 1
