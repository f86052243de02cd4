"""Each request counts once, by its operation and by what its client was told; and so do the transactions held here."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.types import Message, Receive, Scope, Send

from client.metrics.meter import RESULTS
from configuration.rest_limits import RestLimits
from rest.metering import Counted, RestMetering
from rest.metric_families import FAMILIES
from tests.unit.rest.asking import begin, put
from tests.unit.rest.conftest import WAIT_S, RunningRest, Serve, Served

REQUESTS = "pythia_rest_requests_total"


class Counts:
    """What a server has counted, since this was made."""

    def __init__(self, rest: RunningRest) -> None:
        self._rest = rest
        self._before = self._now()

    def _now(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        text = self._rest.client.get("/metrics").text
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
        return {
            (
                sample.name,
                frozenset((key, value) for key, value in sample.labels.items() if key != "process"),
            ): sample.value
            for sample in samples
        }

    def of(self, name: str, **labels: str) -> float:
        key = name, frozenset(labels.items())
        return self._now().get(key, 0.0) - self._before.get(key, 0.0)

    def requests(self) -> dict[tuple[str, str], float]:
        """By operation and answer, without those for metrics."""
        found = {}
        for (name, labels), value in self._now().items():
            operation = dict(labels).get("operation")
            more = value - self._before.get((name, labels), 0.0)
            if name == REQUESTS and operation != "metrics" and more:
                found[str(operation), dict(labels)["answer"]] = more
        return found


def test_requests_count_by_what_they_asked_for_and_what_they_were_told(served: Served) -> None:
    counts = Counts(served.rest)
    late, first = begin(served.client), begin(served.client)
    put(served.client, late, "metered", "1")
    put(served.client, first, "metered", "2")
    assert served.client.post(f"/v1/transactions/{first}/commit").status_code == 200
    for key in ("first-try", "first-try"):  # the second answer is the first one, remembered
        answer = served.client.post(f"/v1/transactions/{late}/commit", headers={"Idempotency-Key": key})
        assert answer.status_code == 409
    assert counts.requests() == {
        ("begin_transaction", "ok"): 2,
        ("put_row", "ok"): 2,
        ("commit_transaction", "ok"): 1,
        ("commit_transaction", "conflict"): 2,
    }
    assert counts.of("pythia_rest_request_seconds_count", operation="commit_transaction") == 3
    root = {"root": "/pythia"}
    assert {result: counts.of("pythia_client_commits_total", result=result, **root) for result in RESULTS} == {
        **dict.fromkeys(RESULTS, 0.0),
        "committed": 1,
        "conflict": 1,
    }


@pytest.mark.parametrize(
    ("ask", "counted"),
    [
        (lambda rest: rest.client.get("/v1/nothing"), ("none", "not-found")),
        (lambda rest: rest.client.get("/v1/nothing/" + "n" * 1_000), ("none", "not-found")),
        (lambda rest: rest.client.head("/v1/health/live"), ("live", "ok")),
        (lambda rest: rest.client.get("/v1/status", headers={"Host": "evil.example.org"}), ("none", "foreign-page")),
        (lambda rest: rest.client.get("/v1/status?%ff=1"), ("none", "invalid-request")),
        (lambda rest: rest.client.get("/v1/status?verbose=1"), ("status", "invalid-request")),
        (lambda rest: rest.client.delete("/v1/status"), ("none", "method-not-allowed")),
        (lambda rest: rest.client.get("/v1/openapi.json"), ("none", "ok")),
    ],
)
def test_what_is_turned_away_counts_too_and_no_path_makes_a_name_of_its_own(
    served: Served, ask: Callable[[RunningRest], object], counted: tuple[str, str]
) -> None:
    counts = Counts(served.rest)
    ask(served.rest)
    assert counts.requests() == {counted: 1}


def test_a_fault_counts_as_one(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Counts(served.rest)

    def fails() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(served.rest.app.state.services.whereabouts, "now", fails)
    answer = served.client.get("/v1/status")
    assert (answer.status_code, answer.headers["connection"]) == (500, "close")
    monkeypatch.undo()
    assert counts.requests() == {("status", "internal"): 1}


def test_a_first_fault_of_any_operation_is_an_increase(serve_rest: Serve) -> None:
    rest = serve_rest()
    text = rest.client.get("/metrics").text
    for operation in ("none", *rest.app.state.takes):
        line = f'pythia_rest_requests_total{{answer="internal",operation="{operation}",process="a"}} 0.0'
        assert line in text


def test_gauges_tell_how_full_it_is(served: Served) -> None:
    counts = Counts(served.rest)
    transaction = begin(served.client)
    put(served.client, transaction, "gauge", "1")
    assert counts.of("pythia_rest_transactions") == 1
    assert counts.of("pythia_rest_transactions_bytes") > 0
    assert counts.of("pythia_client_in_use", root="/pythia") == 1
    assert served.client.delete(f"/v1/transactions/{transaction}").status_code < 300
    assert counts.of("pythia_rest_transactions") == 0
    assert counts.of("pythia_rest_transactions_bytes") == 0
    limits = RestLimits()
    text = served.client.get("/metrics").text
    name = 'process="a"'
    assert f"pythia_rest_requests{{{name}}} 1.0" in text, "the one that asks"
    assert f"pythia_rest_requests_max{{{name}}} {float(limits.requests_max)}" in text
    assert f"pythia_rest_transactions_max{{{name}}} {float(limits.transactions_max)}" in text


def test_transactions_that_their_callers_leave_are_counted(serve_rest: Serve) -> None:
    rest = serve_rest(transaction_idle_ms_max=1)
    counts = Counts(rest)
    begin(rest.client)
    until_s = time.monotonic() + WAIT_S
    while not counts.of("pythia_rest_expired_transactions_total"):
        assert time.monotonic() < until_s
    assert counts.of("pythia_rest_expired_transactions_total") == 1
    transaction = begin(rest.client)
    rest.client.delete(f"/v1/transactions/{transaction}")
    assert counts.of("pythia_rest_expired_transactions_total") == 1


def test_a_client_that_goes_before_its_answer_is_counted_as_gone(serve_rest: Serve) -> None:
    rest = serve_rest()
    counts = Counts(rest)
    host, _, port = rest.address.rpartition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"POST /v1/transactions HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
    until_s = time.monotonic() + WAIT_S
    while counts.requests() != {("none", "gone"): 1}:
        assert time.monotonic() < until_s


def test_what_fails_below_is_raised_on_and_counted() -> None:
    metering = RestMetering()

    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError

    async def receive() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        raise AssertionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(Counted(fails, metering)({"type": "http", "method": "GET"}, receive, send))
    [requests] = [metric for metric in metering.collect() if metric.name == REQUESTS.removesuffix("_total")]
    assert [sample.labels for sample in requests.samples] == [{"operation": "none", "answer": "gone"}]


def test_all_that_there_is_to_count_is_on_the_page(served: Served) -> None:
    text = served.client.get("/metrics").text
    for family in FAMILIES:
        assert f"# HELP {family.name} {family.text}\n" in text
        assert f"# TYPE {family.name} {family.kind}\n" in text
    [expired] = [line for line in text.splitlines() if line.startswith("pythia_rest_expired_transactions_total")]
    assert 'process="a"' in expired
