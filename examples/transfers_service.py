"""A service on asyncio: each request is a transaction, and no request waits for another's.

    export PYTHIA_ZOOKEEPER=… PYTHIA_THRIFT=…
    uvicorn --app-dir examples transfers_service:app
    curl --json '{"payer": "bank", "payee": "alice", "amount": 70}' localhost:8000/transfers
    curl localhost:8000/accounts
    curl localhost:8000/metrics

``manager.run`` awaits a function in a transaction and commits; where another request has committed to the same accounts
since, it awaits the function again in a new one. Of two requests for the last penny one is refused. How often that
happens, and how long each step of a commit takes, is counted for Prometheus.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import FastAPI, HTTPException, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest
from pydantic import BaseModel, Field, PositiveInt

from client import AsyncTransaction, AsyncTransactionManager, ClientMetrics
from client.configured import load_settings

ACCOUNTS = "example_accounts"
BALANCE = b"d:balance"
BANK = "bank"
"""The account that may owe."""
ATTEMPTS_MAX = 100

METRICS = ClientMetrics()
REGISTRY.register(METRICS)

Account = Annotated[str, Field(min_length=1, max_length=100)]


class Transfer(BaseModel):
    """Money that goes from one account to another."""

    payer: Account
    payee: Account
    amount: PositiveInt


@asynccontextmanager
async def connected(app: FastAPI) -> AsyncIterator[None]:
    """One manager for the event loop, for as long as the service runs."""
    async with AsyncTransactionManager.connect(load_settings(), metrics=METRICS) as manager:
        await manager.create_table(ACCOUNTS, ["d"], if_missing=True)
        app.state.manager = manager
        yield


app = FastAPI(lifespan=connected)


@app.post("/transfers", status_code=204)
async def transfer(wanted: Transfer, request: Request) -> None:
    """All of it, or nothing."""

    async def work(transaction: AsyncTransaction) -> None:
        for account, change in ((wanted.payer, -wanted.amount), (wanted.payee, wanted.amount)):
            row = account.encode()
            balance = int((await transaction.get(ACCOUNTS, row)).get(BALANCE, b"0")) + change
            if balance < 0 and account != BANK:
                raise HTTPException(409, f"{account} has too little")  # which rolls back
            await transaction.put(ACCOUNTS, row, {BALANCE: b"%d" % balance})

    await request.app.state.manager.run(work, attempts_max=ATTEMPTS_MAX)


@app.get("/accounts")
async def accounts(request: Request) -> dict[str, int]:
    """All balances as of one moment: their sum is 0, whatever is transferred meanwhile."""
    snapshot = await request.app.state.manager.snapshot()
    return {row.decode(): int(values[BALANCE]) async for row, values in snapshot.scan(ACCOUNTS)}


@app.get("/metrics")
async def metrics() -> Response:
    """For Prometheus: what the transactions came to, beside what Python says of the process."""
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
