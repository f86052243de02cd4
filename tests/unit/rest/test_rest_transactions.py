"""Transactions that are held for a caller."""

from __future__ import annotations

import base64
import gc
import threading
from datetime import UTC, datetime
from typing import Any

import pytest
from httpx import Client, Response

from client import Transaction
from drills.waiting import wait_until
from tests.unit.rest.asking import begin, commit, problem, put, read, refused, stored
from tests.unit.rest.conftest import WAIT_S, Serve, Served


def test_a_transaction_over_two_tables_lands_whole(served: Served) -> None:
    id = begin(served.client)
    assert put(served.client, id, "whole", "1").status_code == 200
    assert put(served.client, id, "whole", "2", "audit").status_code == 200
    assert stored(served.manager, b"whole") == stored(served.manager, b"whole", "audit") == {}
    assert read(served.client, id, "whole") == {"d:a": "1"}
    assert commit(served.client, id).json()["outcome"] == "committed"
    assert stored(served.manager, b"whole") == {b"d:a": b"1"}
    assert stored(served.manager, b"whole", "audit") == {b"d:a": b"2"}


def test_of_a_transaction_that_is_rolled_back_nothing_is_seen(served: Served) -> None:
    id = begin(served.client)
    put(served.client, id, "back", "1")
    for _ in range(2):
        assert served.client.delete(f"/v1/transactions/{id}").json()["outcome"] == "rolled back"
    assert stored(served.manager, b"back") == {}
    assert refused(commit(served.client, id)) == (410, "transaction-ended")
    assert refused(put(served.client, id, "back", "1")) == (410, "transaction-ended")


def test_what_has_committed_is_not_rolled_back(served: Served) -> None:
    id = begin(served.client)
    put(served.client, id, "kept", "1")
    commit(served.client, id)
    assert refused(served.client.delete(f"/v1/transactions/{id}")) == (409, "already-committed")


def test_the_first_of_two_writers_wins_and_the_second_learns_why(served: Served) -> None:
    first, second = begin(served.client), begin(served.client)
    for id in (first, second):
        put(served.client, id, "contended", id)
    assert commit(served.client, first).status_code == 200
    for _ in range(2):
        answer = problem(commit(served.client, second))
        assert (answer["code"], answer["retry"], answer["retry_with"]) == ("conflict", True, "transaction")
    assert stored(served.manager, b"contended") == {b"d:a": first.encode()}


def test_rows_of_row_level_tables_conflict_whatever_the_column(served: Served) -> None:
    first, second = begin(served.client), begin(served.client)
    for id, column in ((first, "d:x"), (second, "d:y")):
        served.client.put(f"/v1/transactions/{id}/tables/audit/rows/level", json={"values": {column: "1"}})
    assert commit(served.client, first).status_code == 200
    assert refused(commit(served.client, second)) == (409, "conflict")


def test_many_writes_are_taken_all_or_none(served: Served) -> None:
    id = begin(served.client)
    good = {"op": "put", "table": "accounts", "row": "many", "values": {"d:a": "1"}}
    bad = {"op": "put", "table": "nowhere", "row": "many", "values": {"d:a": "1"}}
    answer = served.client.post(f"/v1/transactions/{id}/writes", json={"writes": [good, bad]})
    assert refused(answer) == (422, "invalid-request")
    assert read(served.client, id, "many") == {}
    delete = {"op": "delete", "table": "accounts", "row": "many"}
    both = served.client.post(f"/v1/transactions/{id}/writes", json={"writes": [good, delete]})
    assert both.status_code == 200
    assert read(served.client, id, "many") == {}


def test_columns_are_chosen_and_deleted(served: Served) -> None:
    id = begin(served.client)
    row = f"/v1/transactions/{id}/tables/accounts/rows/columns"
    served.client.put(row, json={"values": {"d:a": "1", "d:b": "2", "d:c": "3"}})
    assert served.client.get(row, params={"column": ["d:a", "d:c"]}).json()["values"] == {"d:a": "1", "d:c": "3"}
    served.client.delete(row, params={"column": "d:a"})
    assert served.client.get(row).json()["values"] == {"d:b": "2", "d:c": "3"}
    served.client.delete(row)
    assert served.client.get(row).json()["values"] == {}


def test_a_parameter_that_there_is_not_is_refused_and_nothing_is_done(served: Served) -> None:
    id = begin(served.client)
    row = f"/v1/transactions/{id}/tables/accounts/rows/parameters"
    served.client.put(row, json={"values": {"d:a": "1", "d:b": "2"}})
    answer = served.client.delete(row, params={"columns": "d:a"})
    assert refused(answer) == (422, "invalid-request")
    assert "columns here: it takes column, encoding" in problem(answer)["detail"]
    assert refused(served.client.get(f"{row}s", params={"encodin": "base64"})) == (422, "invalid-request")
    assert refused(served.client.post("/v1/oracle/begin", params={"count": 2})) == (422, "invalid-request")
    assert served.client.get("/v1/health/live", params={"any": "1"}).status_code == 200
    assert read(served.client, id, "parameters") == {"d:a": "1", "d:b": "2"}


def test_a_body_where_there_is_none_is_refused_and_nothing_is_done(served: Served) -> None:
    id = begin(served.client)
    row = f"/v1/transactions/{id}/tables/accounts/rows/bodies"
    served.client.put(row, json={"values": {"d:a": "1", "d:b": "2"}})
    answer = served.client.request("DELETE", row, json={"columns": ["d:a"]})
    assert refused(answer) == (422, "invalid-request")
    assert "has no body" in problem(answer)["detail"]
    assert refused(served.client.post(f"/v1/transactions/{id}/commit", json={"wait": False})) == (
        422,
        "invalid-request",
    )
    assert read(served.client, id, "bodies") == {"d:a": "1", "d:b": "2"}
    for nothing in (b"", b"{}\n", b"null"):
        assert served.client.request("DELETE", row, content=nothing).status_code == 200


@pytest.mark.parametrize("name", ["If-Match", "If-None-Match", "If-Unmodified-Since"])
def test_a_condition_that_nobody_looks_at_is_refused_and_nothing_is_done(served: Served, name: str) -> None:
    id = begin(served.client)
    row = f"/v1/transactions/{id}/tables/accounts/rows/conditions"
    served.client.put(row, json={"values": {"d:a": "1"}})
    for method, body in (("PUT", {"values": {"d:a": "2"}}), ("DELETE", None)):
        answer = served.client.request(method, row, json=body, headers={name: "*"})
        assert refused(answer) == (422, "invalid-request")
        assert f"conditions such as {name} are not looked at" in problem(answer)["detail"]
    assert served.client.get(row, headers={name: "*"}).json()["values"] == {"d:a": "1"}


def test_a_path_with_a_slash_more_is_another_one(served: Served) -> None:
    """A redirection would be followed by some clients and not by others, and could lead past a proxy."""
    for method, path in (("POST", "/v1/transactions/"), ("GET", "/v1/status/"), ("GET", "/console/")):
        assert refused(served.client.request(method, path)) == (404, "not-found")


def test_what_is_said_twice_is_refused_and_nothing_is_done(served: Served) -> None:
    id = begin(served.client)
    rows = f"/v1/transactions/{id}/tables/accounts/rows"
    answer = served.client.get(f"{rows}?prefix=a&prefix=b")
    assert refused(answer) == (422, "invalid-request")
    assert "prefix comes more than once" in problem(answer)["detail"]
    json = {"Content-Type": "application/json"}
    answer = served.client.put(f"{rows}/twice", content=b'{"values": {"d:a": "1", "d:a": "2"}}', headers=json)
    assert refused(answer) == (422, "invalid-request")
    assert "'d:a' comes more than once" in problem(answer)["detail"]
    spellings = {"values": {"ZDphYg==": "MQ==", "ZDphYg": "Mg=="}}
    answer = served.client.put(f"{rows}/dHdpY2U=?encoding=base64", json=spellings)
    assert refused(answer) == (422, "invalid-request")
    assert "the same one" in problem(answer)["detail"]
    keys = [("Idempotency-Key", "one"), ("Idempotency-Key", "two")]
    assert refused(served.client.post("/v1/transactions", headers=keys)) == (422, "invalid-request")
    assert read(served.client, id, "twice") == {}
    assert served.client.get(f"{rows}/twice?column=d:a&column=d:b").status_code == 200


def test_a_range_that_ends_before_it_begins_is_refused(served: Served) -> None:
    id = begin(served.client)
    rows = f"/v1/transactions/{id}/tables/accounts/rows"
    assert refused(served.client.get(rows, params={"start": "b", "stop": "a"})) == (422, "invalid-request")
    assert served.client.get(rows, params={"start": "b", "stop": "b"}).json() == {"rows": [], "next": None}
    assert served.client.get(rows, params={"start": "a", "stop": "b", "after": "b"}).json()["rows"] == []


@pytest.mark.parametrize("kind", [None, "application/x-www-form-urlencoded", "text/plain"])
def test_a_body_that_is_not_sent_as_json_is_told_so(served: Served, kind: str | None) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    for path in ("/v1/transactions", "/v1/oracle/abort"):
        answer = served.client.post(path, content=b'{"read_only": true}', headers=headers)
        assert refused(answer) == (422, "invalid-request")
        assert "Content-Type: application/json" in problem(answer)["detail"]


def test_a_body_that_is_no_json_is_told_what_is_wrong_with_it(served: Served) -> None:
    answer = served.client.post(
        "/v1/transactions", content=b'{"read_only": true', headers={"Content-Type": "application/json"}
    )
    assert refused(answer) == (422, "invalid-request")
    assert "Expecting ',' delimiter" in problem(answer)["detail"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"a": "\xff"}', "can't decode byte 0xff"),
        (b"[" * 100_000, "nested"),
        (b"1" * 5_000, "4300 digits"),
    ],
    ids=["letters", "depth", "digits"],
)
def test_a_body_that_no_reader_of_json_takes_is_told_why(served: Served, body: bytes, said: str) -> None:
    answer = served.client.post("/v1/oracle/begin", content=body, headers={"Content-Type": "application/json"})
    assert refused(answer) == (422, "invalid-request")
    assert "cannot be read as JSON" in problem(answer)["detail"]
    assert said in problem(answer)["detail"]


@pytest.mark.parametrize("depth", [500, 5_000, 50_000])
@pytest.mark.parametrize(("opened", "closed"), [(b"[", b"]"), (b'{"count":', b"}")], ids=["lists", "objects"])
def test_a_body_of_any_depth_is_refused(served: Served, depth: int, opened: bytes, closed: bytes) -> None:
    """How deep a reader of JSON goes depends on the release of Python."""
    body = opened * depth + b"1" + closed * depth
    for path in ("/v1/oracle/begin", "/v1/transactions"):
        answer = served.client.post(path, content=body, headers={"Content-Type": "application/json"})
        assert refused(answer) == (422, "invalid-request")


def test_a_compressed_body_is_refused_as_such(served: Served) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = served.client.post("/v1/oracle/begin", content=b"{}", headers=headers)
    assert refused(answer) == (422, "invalid-request")
    assert "not compressed" in problem(answer)["detail"]
    assert served.client.post("/v1/oracle/begin", json={}, headers={"Content-Encoding": "identity"}).is_success


def test_who_asks_by_a_method_that_there_is_not_is_told_all_that_there_are(served: Served) -> None:
    transaction = "/v1/transactions/5"
    for path, methods in (
        (transaction, "DELETE, GET, HEAD"),
        (f"{transaction}/tables/accounts/rows/alice", "DELETE, GET, HEAD, PUT"),
        (f"{transaction}/commit", "POST"),
        ("/v1/openapi.json", "GET, HEAD"),
    ):
        for method in ("OPTIONS", "PATCH"):
            answer = served.client.request(method, path)
            assert refused(answer) == (405, "method-not-allowed")
            assert answer.headers["Allow"] == methods


def test_head_is_answered_as_get_is_without_a_body(served: Served) -> None:
    for path, status in (("/v1/health/ready", 200), ("/console", 200), ("/v1/oracle/outcomes/0", 422)):
        asked, told = served.client.head(path), served.client.get(path)
        assert asked.status_code == told.status_code == status
        assert asked.headers["content-length"] == told.headers["content-length"]
        assert asked.content == b""
    assert served.client.head("/v1/transactions").status_code == 405


def pages(client: Client, id: str, **chosen: Any) -> list[list[str]]:
    found: list[list[str]] = []
    after = None
    while True:
        parameters = chosen | ({} if after is None else {"after": after})
        answer = client.get(f"/v1/transactions/{id}/tables/accounts/rows", params=parameters)
        assert answer.status_code == 200, answer.text
        found.append([row["row"] for row in answer.json()["rows"]])
        after = answer.json()["next"]
        if after is None:
            return found


def test_rows_are_listed_a_page_at_a_time(served: Served) -> None:
    id = begin(served.client)
    for number in range(5):
        put(served.client, id, f"page-{number}", "1")
    assert pages(served.client, id, prefix="page-", limit=2) == [
        ["page-0", "page-1"],
        ["page-2", "page-3"],
        ["page-4"],
    ]
    assert pages(served.client, id, start="page-1", stop="page-3", limit=2) == [["page-1", "page-2"]]
    assert pages(served.client, id, prefix="page-", limit=2, reverse=True) == [
        ["page-4", "page-3"],
        ["page-2", "page-1"],
        ["page-0"],
    ]
    assert pages(served.client, id, start="page-1", stop="page-3", limit=1, reverse="true") == [["page-2"], ["page-1"]]
    assert pages(served.client, id, start="page-3", after="page-2", reverse=True) == [[]]
    both = served.client.get(f"/v1/transactions/{id}/tables/accounts/rows", params={"prefix": "p", "start": "q"})
    assert refused(both) == (422, "invalid-request")


def test_rows_of_several_tables_are_read_together(served: Served) -> None:
    client = served.client
    committed(client, put_of("read-1", "1"), put_of("read-2", "2"), put_of("read-1", "3") | {"table": "audit"})
    moment = committed(client, put_of("read-2", "4"))
    client.post("/v1/oracle/begin")
    id = begin(client)
    put(client, id, "read-1", "own")

    def reads(*rows: tuple[str, str], **choice: Any) -> dict[str, Any]:
        return {"reads": [{"table": table, "row": row, **choice} for table, row in rows]}

    def read_at(path: str, body: dict[str, Any], **parameters: str) -> list[tuple[str, str, dict[str, str]]]:
        answer = client.post(f"{path}/reads", json=body, params=parameters)
        assert answer.status_code == 200, answer.text
        return [(row["table"], row["row"], row["values"]) for row in answer.json()["rows"]]

    wanted = [("accounts", "read-2"), ("audit", "read-1"), ("accounts", "none"), ("accounts", "read-1")]
    own, past = f"/v1/transactions/{id}", f"/v1/snapshots/{moment}"
    found = [{"d:a": "4"}, {"d:a": "3"}, {}, {"d:a": "own"}]
    assert read_at(own, reads(*wanted)) == [(*row, values) for row, values in zip(wanted, found, strict=True)]
    assert read_at(past, reads(wanted[-1], wanted[-1])) == 2 * [("accounts", "read-1", {"d:a": "1"})]
    assert read_at(past, reads(wanted[0], columns=["d:none"])) == [("accounts", "read-2", {})]
    in_base64 = [("accounts", "cmVhZC0y", {"ZDph": "NA=="})]
    assert read_at(past, reads(("accounts", "cmVhZC0y"), columns=["ZDph"]), encoding="base64") == in_base64
    for body, said in (
        (reads(("nowhere", "r")), "nowhere"),
        (reads(wanted[0], columns=[]), "names nothing"),
        (reads(("accounts", "")), "row"),
        ({"reads": []}, "reads"),
        ({}, "reads"),
        (reads(*(1_001 * wanted[:1])), "1,000 reads (reads_per_request_max)"),
    ):
        for path in (own, past):
            answer = client.post(f"{path}/reads", json=body)
            assert refused(answer) == (422, "invalid-request")
            assert said in problem(answer)["detail"]
    assert refused(client.post("/v1/snapshots/0/reads", json=reads(wanted[0]))) == (422, "invalid-request")
    assert refused(client.post("/v1/transactions/5/reads", json=reads(wanted[0])))[0] == 404


def test_rows_that_are_read_guarded_may_not_change_before_the_commit(served: Served) -> None:
    client = served.client
    committed(client, put_of("guard-1", "1"))
    guarded = {"reads": [{"table": "accounts", "row": row, "columns": ["d:a"]} for row in ("guard-1", "guard-2")]}
    for body, changed, status in (
        (guarded, "guard-1", 200),
        (guarded | {"guarded": True}, "guard-3", 200),
        (guarded | {"guarded": True}, "guard-1", 409),
        (guarded | {"guarded": True}, "guard-2", 409),
    ):
        id = begin(client)
        assert client.post(f"/v1/transactions/{id}/reads", json=body).status_code == 200
        put(client, id, "guarding", "1")
        committed(client, put_of(changed, "2"))
        assert client.post(f"/v1/transactions/{id}/commit").status_code == status
    id = begin(client)
    without_columns = {"guarded": True, "reads": [{"table": "accounts", "row": "guard-1"}]}
    answer = client.post(f"/v1/transactions/{id}/reads", json=without_columns)
    assert refused(answer) == (422, "invalid-request")
    assert "name the columns to guard" in problem(answer)["detail"]
    at_a_snapshot = client.post("/v1/snapshots/5/reads", json=guarded | {"guarded": True})
    assert refused(at_a_snapshot) == (422, "invalid-request")


def test_of_rows_that_an_answer_has_no_room_for_none_is_guarded(serve_rest: Serve) -> None:
    client = serve_rest(page_bytes_max=500).client
    committed(client, put_of("first", "x" * 400), put_of("second", "x" * 400))
    reads = [{"table": "accounts", "row": row, "columns": ["d:a"]} for row in ("first", "second")]
    id = begin(client)
    found = client.post(f"/v1/transactions/{id}/reads", json={"guarded": True, "reads": reads}).json()["rows"]
    assert [row["row"] for row in found] == ["first"]
    put(client, id, "guarding", "1")
    committed(client, put_of("second", "2"))
    assert client.post(f"/v1/transactions/{id}/commit").status_code == 200


def test_rows_that_are_read_together_are_as_many_as_an_answer_may_hold(serve_rest: Serve) -> None:
    client = serve_rest(page_bytes_max=1_000, reads_per_request_max=50).client
    rows = [f"sized-{number:02}" for number in range(50)]
    committed(client, *(put_of(row, "x" * (2_000 if row == rows[30] else 40)) for row in rows))
    id = begin(client)
    left, answers = rows, []
    while left:
        body = {"reads": [{"table": "accounts", "row": row} for row in left]}
        found = client.post(f"/v1/transactions/{id}/reads", json=body).json()["rows"]
        assert found
        assert [row["row"] for row in found] == left[: len(found)]
        assert all(row["values"] for row in found)
        answers.append(len(found))
        left = left[len(found) :]
    assert answers == [19, 11, 1, 19], "the large one comes alone"


def test_a_page_ends_where_enough_was_looked_at_and_may_be_empty(serve_rest: Serve) -> None:
    client = serve_rest(rows_looked_at_max=20).client
    rows = [f"gone-{number:03}" for number in range(70)]
    committed(client, *(put_of(row, "1") for row in rows))
    deletes = ({"op": "delete", "table": "accounts", "row": row} for row in rows[:60])
    moment = committed(client, *deletes)
    client.post("/v1/oracle/begin")
    id = begin(client)
    assert pages(client, id, start="gone-", stop="gone.", limit=5) == [[], rows[60:65], rows[65:]]
    put(client, id, rows[3], "own")
    assert pages(client, id, start="gone-", stop="gone.", limit=8) == [[rows[3]], rows[60:68], rows[68:]]
    past = f"/v1/snapshots/{moment}/tables/accounts/rows"
    first = client.get(past, params={"prefix": "gone-"}).json()
    assert first["rows"] == []
    last = client.get(past, params={"prefix": "gone-", "reverse": True, "limit": 3}).json()
    assert ([row["row"] for row in last["rows"]], last["next"]) == (rows[:-4:-1], rows[-3])
    second = client.get(past, params={"prefix": "gone-", "after": first["next"]}).json()
    assert [row["row"] for row in second["rows"]] == rows[60:]


def test_a_page_ends_at_its_bytes(serve_rest: Serve) -> None:
    client = serve_rest(page_bytes_max=1_000).client
    id = begin(client)
    for number in range(3):
        put(client, id, f"large-{number}", "x" * 900)
    page = client.get(f"/v1/transactions/{id}/tables/accounts/rows", params={"prefix": "large-"}).json()
    assert [row["row"] for row in page["rows"]] == ["large-0", "large-1"]
    assert page["next"] == "large-1"


def test_bytes_that_are_no_text_go_as_base64(served: Served) -> None:
    row, value = b"\xff/\x00", b"\xfe\xfb\xff"
    as_text = {one: base64.b64encode(one).decode() for one in (row, value, b"d:\xff")}
    id = begin(served.client)
    path = f"/v1/transactions/{id}/tables/accounts/rows/{base64.urlsafe_b64encode(row).decode()}"
    answer = served.client.put(
        path, params={"encoding": "base64"}, json={"values": {as_text[b"d:\xff"]: as_text[value]}}
    )
    assert answer.status_code == 200, answer.text
    commit(served.client, id)
    assert stored(served.manager, row) == {b"d:\xff": value}
    id = begin(served.client)
    path = path.replace(path.split("/")[3], id)
    read_back = served.client.get(path, params={"encoding": "base64"}).json()
    assert read_back["values"] == {as_text[b"d:\xff"]: as_text[value]}
    refusal = served.client.get(f"/v1/transactions/{id}/tables/accounts/rows", params={"start": "\uffff"})
    assert refused(refusal) == (422, "not-text")


def test_an_address_that_is_no_text_is_refused_and_not_read_as_another_row(served: Served) -> None:
    id = begin(served.client)
    answer = served.client.get(f"/v1/transactions/{id}/tables/accounts/rows/%ff")
    assert refused(answer) == (422, "invalid-request")


def test_savepoints_are_gone_back_to(served: Served) -> None:
    id = begin(served.client)
    savepoints = f"/v1/transactions/{id}/savepoints"
    put(served.client, id, "saved", "1")
    assert served.client.post(savepoints, json={"name": "one"}).json()["savepoints"] == ["one"]
    assert refused(served.client.post(savepoints, json={"name": "one"})) == (422, "invalid-request")
    put(served.client, id, "saved", "2")
    served.client.post(savepoints, json={"name": "two"})
    assert served.client.post(f"{savepoints}/one/rollback").json()["savepoints"] == ["one"]
    assert read(served.client, id, "saved") == {"d:a": "1"}
    assert refused(served.client.post(f"{savepoints}/two/rollback")) == (404, "not-found")
    assert served.client.delete(f"{savepoints}/one").json()["savepoints"] == []


def claim(client: Client, id: str, key: Any, **more: Any) -> Response:
    return client.post(f"/v1/transactions/{id}/claims", json={"key": key, **more})


def test_what_a_key_names_lands_once(served: Served) -> None:
    first, second = begin(served.client), begin(served.client)
    for id in (first, first, second):
        assert claim(served.client, id, "order/1").json() == {"claimed": True}
    for id in (first, second):
        put(served.client, id, f"claimed by {id}", "1")
    assert commit(served.client, second).status_code == 200
    assert refused(commit(served.client, first)) == (409, "conflict")
    third = begin(served.client)
    assert claim(served.client, third, "order/1").json() == {"claimed": False}
    assert claim(served.client, third, "order/2").json() == {"claimed": True}
    assert claim(served.client, third, "order/1", table="accounts").json() == {"claimed": True}
    assert refused(claim(served.client, third, "order/1", table="nowhere")) == (422, "invalid-request")
    assert stored(served.manager, f"claimed by {first}".encode()) == {}


@pytest.mark.parametrize("key", ["", "x" * 1_025, None, 7])
def test_what_is_no_key_is_not_claimed(served: Served, key: Any) -> None:
    id = begin(served.client)
    assert refused(claim(served.client, id, key)) == (422, "invalid-request")
    assert commit(served.client, id).status_code == 200


def test_claims_take_room(serve_rest: Serve) -> None:
    client = serve_rest(transactions_bytes_max=2_000, transaction_bytes_max=2_000).client
    id = begin(client)
    answers = [claim(client, id, f"{number:0500}") for number in range(4)]
    assert [answer.status_code for answer in answers] == [200, 429, 429, 429]
    assert refused(answers[-1]) == (429, "too-many-bytes")
    assert 500 < client.get(f"/v1/transactions/{id}").json()["written_bytes"] < 1_000
    client.delete(f"/v1/transactions/{id}")
    assert client.get("/v1/status").json()["written_bytes"] == 0


def test_a_read_only_transaction_does_not_write(served: Served) -> None:
    id = served.client.post("/v1/transactions", json={"read_only": True}).json()["id"]
    assert refused(claim(served.client, id, "order/3")) == (422, "invalid-request")
    assert refused(put(served.client, id, "r", "1")) == (422, "invalid-request")
    assert commit(served.client, id).status_code == 200


def test_the_past_is_read_without_a_transaction(served: Served) -> None:
    times = []
    for value in ("1", "2"):
        id = begin(served.client)
        put(served.client, id, "past", value)
        times.append(commit(served.client, id).json()["commit_timestamp"])
    served.client.post("/v1/oracle/begin")
    for time, value in zip(times, ("1", "2"), strict=True):
        rows = f"/v1/snapshots/{time}/tables/accounts/rows"
        assert served.client.get(f"{rows}/past").json()["values"] == {"d:a": value}
        page = served.client.get(rows, params={"prefix": "past"}).json()
        assert page == {"rows": [{"row": "past", "values": {"d:a": value}}], "next": None}
    served.manager.create_snapshot("of-the-first", at=int(times[0]))
    now = datetime.now(UTC).isoformat()
    for moment, value in (("of-the-first", "1"), (now, "2"), (now.replace("+00:00", "Z"), "2")):
        answer = served.client.get(f"/v1/snapshots/{moment}/tables/accounts/rows/past")
        assert answer.json()["values"] == {"d:a": value}
    for moment, said in (("yesterday", "no snapshot"), ("2026-11-21", "a time with its zone"), ("1.5", "a moment is")):
        answer = served.client.get(f"/v1/snapshots/{moment}/tables/accounts/rows/past")
        assert refused(answer) == (422, "invalid-request")
        assert said in problem(answer)["detail"]


def committed(client: Client, *writes: dict[str, Any]) -> str:
    """The commit timestamp of a transaction with these writes."""
    id = begin(client)
    taken = client.post(f"/v1/transactions/{id}/writes", json={"writes": writes})
    assert taken.status_code == 200, taken.text
    timestamp: str = commit(client, id).json()["commit_timestamp"]
    return timestamp


def put_of(row: str, value: str) -> dict[str, Any]:
    return {"op": "put", "table": "accounts", "row": row, "values": {"d:a": value}}


def test_what_changed_since_a_moment_is_listed_a_page_at_a_time(serve_rest: Serve) -> None:
    client = serve_rest(rows_looked_at_max=4).client
    rows = [f"changes-{number:02}" for number in range(12)]
    first = committed(client, *(put_of(row, "1") for row in rows))
    delete = {"op": "delete", "table": "accounts", "row": rows[8]}
    second = committed(client, put_of(rows[1], "2"), put_of(rows[7], "2"), delete)
    client.post("/v1/oracle/begin")

    def page(moment: str, **parameters: Any) -> Response:
        return client.get(f"/v1/snapshots/{moment}/tables/accounts/changes", params=parameters)

    def change(row: str, values: dict[str, str] | None) -> dict[str, Any]:
        return {"row": row, "values": values, "commit_timestamp": second}

    chosen: dict[str, Any] = {"since": first, "prefix": "changes-"}
    found: list[list[dict[str, Any]]] = []
    after: dict[str, str] = {}
    for _ in range(3):
        answer = page(second, **chosen, **after).json()
        assert answer["snapshot"] == second
        found.append(answer["rows"])
        after = {"after": answer["next"]}
    changed = [change(rows[1], {"d:a": "2"}), change(rows[7], {"d:a": "2"}), change(rows[8], None)]
    assert found == [changed[:1], changed[1:2], changed[2:]]
    assert after == {"after": rows[11]}
    end: dict[str, Any] = {"rows": [], "next": None, "snapshot": second}
    assert page(second, **chosen, **after).json() == end, "a page may be empty"
    assert page(second, **chosen, after="changes.").json() == end, "behind the last row there can be"
    assert page(second, **chosen, limit=1).json()["next"] == rows[3], "up to there it is looked at"
    assert page(second, **chosen, limit=1, after=rows[3]).json()["next"] == rows[7]
    assert page(first, **chosen).json() == {"rows": [], "next": rows[3], "snapshot": first}
    since_the_beginning = page(second, since="0", start=rows[7], stop=rows[10]).json()
    assert [row["row"] for row in since_the_beginning["rows"]] == [rows[7], rows[9]]


def test_changes_are_refused_where_there_is_no_such_moment(served: Served) -> None:
    earlier = committed(served.client, put_of("refused", "1"))
    later = committed(served.client, put_of("refused", "2"))
    served.client.post("/v1/oracle/begin")
    for moment, since, said in (
        (earlier, later, "in their order"),
        (later, "yesterday", "no snapshot"),
        (later, "2026-11-21", "a time with its zone"),
        (later, "-1", "a moment is"),
        ("0", earlier, "a moment is"),
    ):
        answer = served.client.get(f"/v1/snapshots/{moment}/tables/accounts/changes", params={"since": since})
        assert refused(answer) == (422, "invalid-request")
        assert said in problem(answer)["detail"]
    path = f"/v1/snapshots/{later}/tables/accounts/changes"
    assert refused(served.client.get(path)) == (422, "invalid-request"), "since has to be given"
    backward = served.client.get(path, params={"since": "0", "reverse": True})
    assert refused(backward) == (422, "invalid-request"), "it has no order but that of the keys"
    missing = served.client.get(f"/v1/snapshots/{later}/tables/none/changes", params={"since": "0"})
    assert refused(missing) == (422, "invalid-request")
    served.manager.create_snapshot("changes-from-here", at=int(earlier))
    answer = served.client.get(path, params={"since": "changes-from-here", "prefix": "refused"}).json()
    assert [row["values"] for row in answer["rows"]] == [{"d:a": "2"}]


def test_one_transaction_serves_one_request_at_a_time(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    id = begin(served.client)
    put(served.client, id, "busy", "1")
    held = served.rest.app.state.services.held_transactions._held[int(id)]
    writing, go_on, plainly = threading.Event(), threading.Event(), held.transaction.get

    def slowly(*arguments: Any) -> Any:
        writing.set()
        assert go_on.wait(WAIT_S)
        return plainly(*arguments)

    monkeypatch.setattr(held.transaction, "get", slowly)
    seen: list[dict[str, str]] = []
    reader = threading.Thread(target=lambda: seen.append(read(served.client, id, "busy")))
    reader.start()
    assert writing.wait(WAIT_S)
    assert refused(put(served.client, id, "busy", "2")) == (409, "transaction-busy")
    assert refused(commit(served.client, id)) == (409, "transaction-busy")
    assert refused(served.client.delete(f"/v1/transactions/{id}")) == (409, "transaction-busy")
    go_on.set()
    reader.join(WAIT_S)
    assert seen == [{"d:a": "1"}]
    assert commit(served.client, id).status_code == 200


def test_what_is_held_is_bounded(serve_rest: Serve, shared_installation: object) -> None:
    client = serve_rest(transactions_max=2, transactions_bytes_max=2_000, transaction_bytes_max=2_000).client
    one, two = begin(client), begin(client)
    answer = client.post("/v1/transactions")
    assert refused(answer) == (429, "too-many-transactions")
    assert answer.headers["retry-after"] == "1"
    assert put(client, one, "bounded", "x" * 1_500).status_code == 200
    assert refused(put(client, two, "bounded-2", "x" * 1_500)) == (429, "too-many-bytes")
    assert read(client, two, "bounded-2") == {}
    client.delete(f"/v1/transactions/{one}")
    assert put(client, two, "bounded-2", "x" * 1_500).status_code == 200
    assert begin(client)


def test_what_was_refused_keeps_no_room(serve_rest: Serve) -> None:
    client = serve_rest(transactions_bytes_max=2_000, transaction_bytes_max=2_000).client
    id = begin(client)
    writes = f"/v1/transactions/{id}/writes"
    both = [
        {"op": "put", "table": table, "row": "r", "values": {"d:a": "x" * 500}} for table in ("accounts", "nowhere")
    ]
    for _ in range(2):
        assert refused(put(client, id, "refused", "x" * 1_500, "nowhere")) == (422, "invalid-request")
        assert refused(client.post(writes, json={"writes": both})) == (422, "invalid-request")
    assert client.get(f"/v1/transactions/{id}").json()["written_bytes"] == 0
    assert put(client, id, "taken", "x" * 1_500).status_code == 200
    assert client.get("/v1/status").json()["written_bytes"] > 1_500
    client.delete(f"/v1/transactions/{id}")
    assert client.get("/v1/status").json()["written_bytes"] == 0


def test_a_deleted_row_takes_as_much_room_as_it_has_columns(serve_rest: Serve) -> None:
    client = serve_rest(transactions_bytes_max=20_000, transaction_bytes_max=20_000).client
    id = begin(client)
    row = f"/v1/transactions/{id}/tables/accounts/rows/wide"
    client.put(row, json={"values": {f"d:{number}": "x" for number in range(60)}})
    assert client.post(f"/v1/transactions/{id}/commit").status_code == 200
    first, second = begin(client), begin(client)
    taken = client.delete(f"/v1/transactions/{first}/tables/accounts/rows/wide").json()["written_bytes"]
    assert taken > 12_000
    assert client.get("/v1/status").json()["written_bytes"] == taken
    both = sum(
        client.delete(f"/v1/transactions/{each}/tables/accounts/rows/wide").json()["written_bytes"]
        for each in (first, second)
    )
    assert both == 2 * taken == client.get("/v1/status").json()["written_bytes"], "known when it was done"
    assert refused(put(client, second, "more", "x")) == (429, "too-many-bytes")
    assert client.get("/v1/status").json()["written_bytes"] == both
    client.delete(f"/v1/transactions/{first}")
    assert put(client, second, "more", "x").status_code == 200


def test_what_was_undone_keeps_no_room(serve_rest: Serve) -> None:
    client = serve_rest(transactions_bytes_max=2_000, transaction_bytes_max=2_000).client
    id = begin(client)
    savepoints = f"/v1/transactions/{id}/savepoints"
    before = put(client, id, "kept", "x").json()["written_bytes"]
    client.post(savepoints, json={"name": "one"})
    for _ in range(3):
        assert put(client, id, "undone", "x" * 1_000).status_code == 200
        assert client.post(f"{savepoints}/one/rollback").json()["written_bytes"] == before
    client.delete(f"/v1/transactions/{id}")
    assert client.get("/v1/status").json()["written_bytes"] == 0


def test_what_has_ended_is_not_held_however_often_its_end_is_asked_for(served: Served) -> None:
    first, second = begin(served.client), begin(served.client)
    for id in (first, second):
        assert put(served.client, id, "ended", id).status_code == 200
    assert commit(served.client, first).status_code == 200
    answers = [commit(served.client, second) for _ in range(3)]
    assert [refused(answer) for answer in answers] == [(409, "conflict")] * 3
    assert len({answer.text for answer in answers}) == 1

    def is_gone() -> bool:  # a request's own objects may stay for a moment after its answer
        gc.collect()
        held = (each.start_timestamp for each in gc.get_objects() if isinstance(each, Transaction))
        return not {int(first), int(second)} & set(held)

    wait_until(is_gone, "transactions that have ended to be let go", WAIT_S)


def test_a_transaction_that_nobody_uses_expires(serve_rest: Serve, served: Served) -> None:
    rest = serve_rest(transaction_idle_ms_max=1)
    id = begin(rest.client)
    put(rest.client, id, "expired", "1")
    answer = rest.client.get(f"/v1/transactions/{id}")
    for _ in range(200):
        if answer.status_code == 410:
            break  # before that it is open, or just being rolled back
        assert answer.status_code == 200 or refused(answer) == (409, "transaction-busy")
        threading.Event().wait(0.1)
        answer = rest.client.get(f"/v1/transactions/{id}")
    assert refused(answer) == (410, "transaction-expired")
    assert refused(commit(rest.client, id)) == (410, "transaction-expired")
    assert stored(served.manager, b"expired") == {}


def test_a_transaction_of_a_process_that_was_started_anew_is_unknown_and_never_commits(
    serve_rest: Serve, served: Served
) -> None:
    before = serve_rest()
    id = begin(before.client)
    put(before.client, id, "lost", "1")
    after = serve_rest()
    assert refused(put(after.client, id, "lost", "1")) == (404, "transaction-unknown")
    assert refused(after.client.get(f"/v1/transactions/{id}")) == (404, "transaction-unknown")
    for _ in range(2):
        assert refused(commit(after.client, id)) == (410, "transaction-lost")
    assert commit(before.client, id).status_code == 409, "it was told that it never will"
    assert stored(served.manager, b"lost") == {}


def test_a_commit_that_is_repeated_at_another_process_is_answered_from_the_commit_table(
    serve_rest: Serve, served: Served
) -> None:
    before, after = serve_rest(), serve_rest()
    id = begin(before.client)
    put(before.client, id, "again", "1")
    committed = commit(before.client, id).json()
    assert commit(after.client, id).json() == committed
    assert stored(served.manager, b"again") == {b"d:a": b"1"}
