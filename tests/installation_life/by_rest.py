"""Transactions that a REST server holds, and what it shows of the past, as they look to who takes part in a life."""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import httpx

from client import Conflict, InvalidRequest, OutcomeUnknown, TransactionAborted
from client.snapshots.changed_rows import ChangedRow
from client.transactions.savepoints import OwnWrites
from commit_table import Aborted, Committed
from store import StoreUnavailable
from tests.installation_life.model import Content, Row
from tests.unit.rest.asking import problem

_ABORTED = {"table-fenced", "snapshot-too-old", "aborted", "transaction-expired", "transaction-lost"}
_BASE64 = {"encoding": "base64"}
PAGE_ROWS = 2


def ask(client: httpx.Client, method: str, path: str, **more: Any) -> dict[str, Any]:
    """What a request is answered with; raises what the library would have raised here."""
    answer = client.request(method, path, **more)
    if answer.is_success:
        found: dict[str, Any] = answer.json()
        return found
    told = problem(answer)
    code, start = told["code"], int(told.get("start_timestamp", 0))
    if code == "conflict":
        raise Conflict(start, told["detail"])
    if code in _ABORTED:
        raise TransactionAborted(start, told["detail"])
    if code == "outcome-unknown":
        raise OutcomeUnknown(start, 0)
    if code == "store-unavailable":
        raise StoreUnavailable(told["detail"])
    if code == "invalid-request":
        raise InvalidRequest(told["detail"])
    raise AssertionError(answer.text)


class RestTransaction:
    """One that a server holds. It has what REST has of ``client.Transaction``, by the same names."""

    def __init__(self, client: httpx.Client) -> None:
        begun = ask(client, "POST", "/v1/transactions")
        self.start_timestamp, self.snapshot_timestamp = int(begun["id"]), int(begun["snapshot"])
        self._client = client
        self._path = f"/v1/transactions/{begun['id']}"
        self._numbers = count()

    def is_open(self) -> bool:
        """Whether the server says so."""
        return int(self._ask("GET", "")["id"]) == self.start_timestamp

    def put(self, table: str, row: bytes, values: Mapping[bytes, bytes], *, conflict_free: bool = False) -> None:
        """See ``Transaction``."""
        assert not conflict_free, "REST has no such writes"
        body = {"values": {_text(column): _text(value) for column, value in values.items()}}
        self._ask("PUT", f"/tables/{table}/rows/{_text(row)}", params=_BASE64, json=body)

    def delete(
        self, table: str, row: bytes, columns: Sequence[bytes] | None = None, *, conflict_free: bool = False
    ) -> None:
        """See ``Transaction``."""
        assert not conflict_free, "REST has no such writes"
        self._ask("DELETE", f"/tables/{table}/rows/{_text(row)}", params=_chosen(columns))

    def guard(self, table: str, rows: Collection[bytes], columns: Sequence[bytes] | None = None) -> None:
        """See ``Transaction``: here they are read as well."""
        self._read(table, rows, columns, guarded=True)

    def claim(self, key: str, *, table: str | None = None) -> bool:
        """See ``Transaction``."""
        return bool(self._ask("POST", "/claims", json={"key": key, "table": table})["claimed"])

    def get(
        self, table: str, row: bytes, columns: Sequence[bytes] | None = None, *, own_writes: OwnWrites = "all"
    ) -> Row:
        """See ``Transaction``."""
        assert own_writes == "all", "REST has no other sight"
        return _row(self._ask("GET", f"/tables/{table}/rows/{_text(row)}", params=_chosen(columns))["values"])

    def get_many(self, table: str, rows: Collection[bytes], *, own_writes: OwnWrites = "all") -> Content:
        """See ``Transaction``; of a row without columns REST does not tell that there is one."""
        assert own_writes == "all", "REST has no other sight"
        return self._read(table, rows, None, guarded=False)

    def scan(self, table: str, *, reverse: bool = False, own_writes: OwnWrites = "all") -> Iterator[tuple[bytes, Row]]:
        """See ``Transaction``; a few rows at a time."""
        assert own_writes == "all", "REST has no other sight"
        return _rows(self._client, f"{self._path}/tables/{table}/rows", reverse=reverse)

    def savepoint(self) -> str:
        """Its name."""
        name = f"s{next(self._numbers)}"
        self._ask("POST", "/savepoints", json={"name": name})
        return name

    def rollback_to(self, savepoint: Any) -> None:
        """See ``Transaction``."""
        self._ask("POST", f"/savepoints/{savepoint}/rollback")

    def release(self, savepoint: Any) -> None:
        """See ``Transaction``."""
        self._ask("DELETE", f"/savepoints/{savepoint}")

    def commit(self) -> Committed:
        """See ``Transaction``; it may be asked for any number of times."""
        return Committed(int(self._ask("POST", "/commit")["commit_timestamp"]))

    def rollback(self) -> Committed | Aborted:
        """See ``Transaction``."""
        self._ask("DELETE", "")
        return Aborted()

    def _read(self, table: str, rows: Collection[bytes], columns: Sequence[bytes] | None, *, guarded: bool) -> Content:
        wanted = None if columns is None else [_text(column) for column in columns]
        reads = [{"table": table, "row": _text(row), "columns": wanted} for row in rows]
        found = self._ask("POST", "/reads", params=_BASE64, json={"reads": reads, "guarded": guarded})["rows"]
        return {b64decode(each["row"]): _row(each["values"]) for each in found if each["values"]}

    def _ask(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        return ask(self._client, method, self._path + path, **more)


def rows_at(client: httpx.Client, moment: int, table: str, *, reverse: bool = False) -> Content:
    """All rows of a table as of a moment, a few at a time, in the order in which they come."""
    return dict(_rows(client, f"/v1/snapshots/{moment}/tables/{table}/rows", reverse=reverse))


def changes_at(client: httpx.Client, moment: int, table: str, since: int) -> list[ChangedRow]:
    """All that changed between two moments, a few rows at a time."""
    pages = _pages(client, f"/v1/snapshots/{moment}/tables/{table}/changes", since=since)
    return [
        ChangedRow(
            b64decode(each["row"]),
            None if each["values"] is None else _row(each["values"]),
            int(each["commit_timestamp"]),
        )
        for page in pages
        for each in page["rows"]
    ]


def _rows(client: httpx.Client, path: str, *, reverse: bool) -> Iterator[tuple[bytes, Row]]:
    for page in _pages(client, path, reverse=reverse):
        for each in page["rows"]:
            yield b64decode(each["row"]), _row(each["values"])


def _pages(client: httpx.Client, path: str, **parameters: Any) -> Iterator[dict[str, Any]]:
    after: dict[str, str] = {}
    while True:
        page = ask(client, "GET", path, params={**_BASE64, "limit": PAGE_ROWS, **parameters, **after})
        yield page
        if page["next"] is None:
            return
        after = {"after": page["next"]}


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode()


def _row(values: Mapping[str, str]) -> Row:
    return {b64decode(column): b64decode(value) for column, value in values.items()}


def _chosen(columns: Sequence[bytes] | None) -> dict[str, Any]:
    return {**_BASE64, **({} if columns is None else {"column": [_text(column) for column in columns]})}
