"""A transaction as a dependency of FastAPI, which ends what was yielded after the answer, unless it is told not to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Literal

import httpx
import pytest
from fastapi import Depends, FastAPI, Request, Response

from client import AsyncTransaction, AsyncTransactionManager, Conflict, TransactionManager
from tests.unit.client.conftest import A
from tests.unit.client.transacting import get, put


async def begun(request: Request) -> AsyncIterator[AsyncTransaction]:
    async with request.app.state.manager.transaction() as tx:
        yield tx


async def told(request: Request, error: Exception) -> Response:
    return Response(str(error), status_code=409)


def service(scope: Literal["function", "request"], meanwhile: Callable[[], Awaitable[None]]) -> FastAPI:
    """A request writes one row; something happens before it ends."""
    app, depends = FastAPI(exception_handlers={Conflict: told}), Depends(begun, scope=scope)

    async def write(tx: AsyncTransaction = depends) -> None:
        await tx.put("t", b"r", {A: b"of the request"})
        await meanwhile()

    app.post("/writes", status_code=204)(write)
    return app


async def ask(app: FastAPI) -> int:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
        return (await client.post("/writes")).status_code


@pytest.mark.parametrize(("scope", "answered"), [("function", 409), ("request", 204)])
def test_who_is_answered_after_the_commit_is_told_of_a_conflict_and_who_is_before_is_not(
    manager: TransactionManager, scope: Literal["function", "request"], answered: int
) -> None:
    """The latter is what it is: docs/concepts/asyncio.md tells how to have the former."""

    async def meanwhile() -> None:
        await asyncio.to_thread(put, manager, b"r", b"of somebody else")

    async def test() -> None:
        async with AsyncTransactionManager(manager) as front:
            app = service(scope, meanwhile)
            app.state.manager = front
            assert await ask(app) == answered
            assert await asyncio.to_thread(get, manager, b"r") == b"of somebody else"

    asyncio.run(test())


def test_what_is_answered_after_the_commit_is_there(manager: TransactionManager) -> None:
    async def nothing() -> None:
        pass

    async def test() -> None:
        async with AsyncTransactionManager(manager) as front:
            app = service("function", nothing)
            app.state.manager = front
            assert await ask(app) == 204
            assert await asyncio.to_thread(get, manager, b"r") == b"of the request"

    asyncio.run(test())
