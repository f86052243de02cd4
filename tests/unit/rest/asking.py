"""Short requests that the tests of several subjects send."""

from __future__ import annotations

from typing import Any

import httpx

from client import TransactionManager


def begin(client: httpx.Client, **headers: str) -> str:
    answer = client.post("/v1/transactions", headers=headers)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def put(client: httpx.Client, id: str, row: str, value: str, table: str = "accounts") -> httpx.Response:
    return client.put(f"/v1/transactions/{id}/tables/{table}/rows/{row}", json={"values": {"d:a": value}})


def commit(client: httpx.Client, id: str, **headers: str) -> httpx.Response:
    return client.post(f"/v1/transactions/{id}/commit", headers=headers)


def read(client: httpx.Client, id: str, row: str, table: str = "accounts") -> dict[str, str]:
    answer = client.get(f"/v1/transactions/{id}/tables/{table}/rows/{row}")
    assert answer.status_code == 200, answer.text
    values: dict[str, str] = answer.json()["values"]
    return values


def stored(manager: TransactionManager, row: bytes, table: str = "accounts") -> dict[bytes, bytes]:
    """What everybody sees."""
    return manager.snapshot().get(table, row)


def problem(answer: httpx.Response) -> dict[str, Any]:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    body: dict[str, Any] = answer.json()
    assert body["status"] == answer.status_code
    return body


def refused(answer: httpx.Response) -> tuple[int, str]:
    """Status and code."""
    return answer.status_code, str(problem(answer)["code"])
