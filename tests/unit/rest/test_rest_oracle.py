"""The oracle as it is, over REST."""

from __future__ import annotations

from typing import Any

import pytest

from client import cell_id, row_id
from tests.unit.rest.asking import problem, refused
from tests.unit.rest.conftest import RunningRest, Serve, Served


def begun(served: Served | RunningRest, count: int = 1) -> dict[str, Any]:
    answer = served.client.post("/v1/oracle/begin", json={"count": count})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def body_of(begun: dict[str, Any], place: int = 0, **more: Any) -> dict[str, Any]:
    return {"start_timestamp": begun["start_timestamps"][place], "snapshot": begun["snapshot"], **more}


def test_transactions_begin_at_one_snapshot(served: Served) -> None:
    several = begun(served, 3)
    assert len(set(several["start_timestamps"])) == 3
    assert all(int(several["snapshot"]) < int(start) for start in several["start_timestamps"])


def test_a_cell_by_name_and_by_id_is_one_cell(served: Served) -> None:
    three = begun(served, 3)
    cell = {"table": "t", "row": "r", "column": "f:q"}
    assert served.client.post("/v1/oracle/commit", json=body_of(three, cells=[cell])).status_code == 200
    by_id = body_of(three, 1, cell_ids=[str(cell_id("t", b"r", b"f:q"))])
    assert refused(served.client.post("/v1/oracle/commit", json=by_id)) == (409, "conflict")
    another = body_of(three, 2, cell_ids=[str(row_id("t", b"r"))])
    assert served.client.post("/v1/oracle/commit", json=another).status_code == 200


def test_a_row_without_column_and_base64(served: Served) -> None:
    two = begun(served, 2)
    first = body_of(two, cells=[{"table": "t", "row": "/w=="}])
    answer = served.client.post("/v1/oracle/commit", params={"encoding": "base64"}, json=first)
    assert answer.status_code == 200, answer.text
    second = body_of(two, 1, cell_ids=[str(row_id("t", b"\xff"))])
    assert refused(served.client.post("/v1/oracle/commit", json=second)) == (409, "conflict")


def test_guards_conflict_with_who_wrote_them_and_with_nobody_who_guards_them(served: Served) -> None:
    several = begun(served, 6)
    cell = {"table": "t", "row": "guarded", "column": "f:q"}
    written = {"cells": [cell], "guards": [cell], "guard_ids": [str(cell_id("t", b"guarded", b"f:q"))]}
    guards: list[dict[str, Any]] = [{"guards": [cell]}, {"guard_ids": written["guard_ids"]}]

    def answers(*bodies: dict[str, Any]) -> list[int]:
        return [served.client.post("/v1/oracle/commit", json=body).status_code for body in bodies]

    assert answers(*(body_of(several, place, **each) for place, each in enumerate(guards))) == [200, 200]
    assert answers(body_of(several, 2, cell_ids=["1"], **written)) == [200]
    assert answers(*(body_of(several, 3 + place, **each) for place, each in enumerate(guards))) == [409, 409]
    assert answers(body_of(several, 5, cell_ids=["2"])) == [200]


def test_a_write_set_with_guards_that_no_frame_should_have_goes_in_parts(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rest.oracle_routes.COMMIT_CELLS_MAX", 1)
    several = begun(served, 4)
    bodies = [
        body_of(several, 0, cell_ids=["501", "502"], guard_ids=["503", "501"]),
        body_of(several, 1, cell_ids=["504", "505"], guard_ids=["503"]),
        body_of(several, 2, cell_ids=["506", "507"], guard_ids=["503", "502"]),
        body_of(several, 3, cell_ids=["503", "508"]),
    ]
    assert [served.client.post("/v1/oracle/commit", json=each).status_code for each in bodies] == [200, 200, 409, 200]


def test_guards_count_as_cells_do(serve_rest: Serve) -> None:
    served = serve_rest(cells_per_commit_max=3)
    cell = {"table": "t", "row": "r"}
    most: dict[str, Any] = {"cells": [cell], "guards": [cell], "guard_ids": ["1"]}
    body = body_of(begun(served), **most | {"guard_ids": ["1", "2"]})
    answer = served.client.post("/v1/oracle/commit", json=body)
    assert refused(answer) == (413, "transaction-too-large")
    assert "at most 3 cells and guards" in problem(answer)["detail"]
    assert served.client.post("/v1/oracle/commit", json=body | most).status_code == 200


def test_a_repeated_commit_gets_the_same_answer(served: Served) -> None:
    body = body_of(begun(served), cell_ids=["1234"])
    answers = [served.client.post("/v1/oracle/commit", json=body).json() for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0]["outcome"] == "committed"


def test_each_commit_of_a_batch_is_decided_by_itself(served: Served) -> None:
    two = begun(served, 2)
    commits = [body_of(two, place, cell_ids=["77"]) for place in range(2)]
    decisions = served.client.post("/v1/oracle/commits", json={"commits": commits}).json()["decisions"]
    assert [one["outcome"] for one in decisions] == ["committed", "aborted"]
    assert decisions[1]["problem"]["code"] == "conflict"


def test_a_commit_of_a_batch_that_cannot_be_is_refused_and_the_others_are_decided(served: Served) -> None:
    one = begun(served)
    never = {"start_timestamp": "9000000000000000001", "snapshot": "9000000000000000000", "cell_ids": ["1"]}
    commits = [never, body_of(one, cell_ids=["78"])]
    key = {"Idempotency-Key": "a-batch"}
    answers = [served.client.post("/v1/oracle/commits", json={"commits": commits}, headers=key) for _ in range(2)]
    assert [one["outcome"] for one in answers[0].json()["decisions"]] == ["refused", "committed"]
    assert answers[0].json()["decisions"][0]["problem"]["code"] == "invalid-request"
    assert answers[0].content == answers[1].content


def test_an_aborted_transaction_does_not_commit(served: Served) -> None:
    two = begun(served, 2)
    starts = two["start_timestamps"]
    served.client.post("/v1/oracle/commit", json=body_of(two, 1, cell_ids=["9"]))
    aborted = served.client.post("/v1/oracle/abort", json={"start_timestamps": starts}).json()["outcomes"]
    assert [one["outcome"] for one in aborted] == ["aborted", "committed"]
    assert refused(served.client.post("/v1/oracle/commit", json=body_of(two, cell_ids=["8"]))) == (409, "aborted")
    asked = served.client.post("/v1/oracle/outcomes", json={"start_timestamps": starts}).json()["outcomes"]
    assert asked == aborted
    assert served.client.get(f"/v1/oracle/outcomes/{starts[1]}").json() == aborted[1]


def test_an_outcome_is_undecided_before_the_commit(served: Served) -> None:
    start = begun(served)["start_timestamps"][0]
    assert served.client.get(f"/v1/oracle/outcomes/{start}").json()["outcome"] == "undecided"


def test_where_the_oracle_does_not_remember_the_transaction_is_aborted_unless_it_is_to_be_kept(served: Served) -> None:
    two = begun(served, 2)
    old = str(int(served.client.get("/v1/status").json()["numbers"]["low_watermark"]) - 1)
    kept = body_of(two, cell_ids=["5"], on_too_old="keep") | {"snapshot": old}
    answer = served.client.post("/v1/oracle/commit", json=kept)
    assert refused(answer) == (409, "snapshot-too-old")
    assert problem(answer)["outcome"] == "undecided"
    validated = kept | {"validated": two["snapshot"]}
    assert served.client.post("/v1/oracle/commit", json=validated).json()["outcome"] == "committed"
    ended = body_of(two, 1, cell_ids=["6"]) | {"snapshot": old}
    answer = served.client.post("/v1/oracle/commit", json=ended)
    assert problem(answer)["outcome"] == "aborted"
    again = ended | {"validated": two["snapshot"]}
    assert refused(served.client.post("/v1/oracle/commit", json=again)) == (409, "aborted")


def test_heartbeats_and_snapshots(served: Served) -> None:
    taken = served.client.post("/v1/oracle/snapshot").json()
    beat = {"start_timestamp": taken["start_timestamp"], "snapshot": taken["snapshot"]}
    answer = served.client.post("/v1/oracle/heartbeat", json={"transactions": [beat]}).json()
    assert answer == {"alive": {taken["start_timestamp"]: True}}


def test_a_timestamp_says_when_it_was_taken(served: Served) -> None:
    decoded = served.client.get(f"/v1/timestamps/{(1_000 << 18) | 7}").json()
    assert (decoded["time"], decoded["milliseconds"], decoded["counter"]) == (
        "1970-01-01T00:00:01.000000+00:00",
        1_000,
        7,
    )


def test_more_than_a_request_may_ask_is_refused(served: Served) -> None:
    assert refused(served.client.post("/v1/oracle/begin", json={"count": 1_001})) == (422, "invalid-request")
    for wrong in ("0", "-1", "9223372036854775807", "x", "01"):
        assert refused(served.client.get(f"/v1/oracle/outcomes/{wrong}")) == (422, "invalid-request")
    never = served.client.get("/v1/oracle/outcomes/9000000000000000000")
    assert refused(never) == (422, "invalid-request")


def test_what_is_no_sound_json_is_refused(served: Served) -> None:
    for body in (
        "{",
        "[" * 100_000,
        '{"\\ud800": 1}',
        '{"count": NaN}',
        f'{{"count": {"1" * 5_000}}}',
        "5",
        '{"count": 1.5}',
    ):
        answer = served.client.post(
            "/v1/oracle/begin", content=body.encode(), headers={"Content-Type": "application/json"}
        )
        assert refused(answer) == (422, "invalid-request"), body[:20]


def test_health_and_status_say_how_it_is(served: Served) -> None:
    assert (
        served.client.get("/v1/health/live").json() == served.client.get("/v1/health/ready").json() == {"status": "ok"}
    )
    status = served.client.get("/v1/status").json()
    assert status["role"] == "primary"
    assert status["oracle"] == served.installation.find_primary()
