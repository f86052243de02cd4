"""Requests are bounded, and whoever is slow holds up himself."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from configuration.rest_limits import InvalidLimit, RestLimits
from rest.metering import CAUSES, HEAD_TOO_SLOW, NO_ROOM, UNREAD
from tests.unit.rest.asking import begin, refused
from tests.unit.rest.conftest import WAIT_S, RunningRest, Serve

OPENAPI = b"GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n"  # more than a connection's buffers are set to
BEGIN = b"POST /v1/oracle/begin HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


@contextlib.contextmanager
def connection(rest: RunningRest, first: bytes = b"") -> Iterator[socket.socket]:
    host, _, port = rest.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=WAIT_S) as connected:
        connected.sendall(first)
        yield connected


def received(connected: socket.socket) -> bytes:
    """Everything up to the end of the connection."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connected.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def await_connections(rest: RunningRest, count: int) -> None:
    """Until the server has exactly so many; AssertionError after ``WAIT_S`` seconds."""
    ends_s = time.monotonic() + WAIT_S
    while (now := len(rest.server.server_state.connections)) != count:
        assert time.monotonic() < ends_s, f"the server has {now} connections, not {count}"
        threading.Event().wait(0.001)


def closed(rest: RunningRest) -> dict[str, float]:
    """What it says that it closed connections for, and how many of them."""
    samples = [sample for family in rest.app.state.metering.collect() for sample in family.samples]
    counts = {each.labels["cause"]: each.value for each in samples if each.name.endswith("_closed_connections_total")}
    assert set(counts) == set(CAUSES), "from zero on"
    return {cause: count for cause, count in counts.items() if count}


@pytest.mark.parametrize("first", [b"", b"GET /v1/health/li", BEGIN])
def test_a_head_that_does_not_come_in_time_ends_the_connection(serve_rest: Serve, first: bytes) -> None:
    rest = serve_rest(header_ms_max=50)
    with connection(rest, first) as slow:
        assert received(slow) == b""
    assert closed(rest) == {HEAD_TOO_SLOW: 1}


def test_a_second_head_has_to_come_in_time_as_well(serve_rest: Serve) -> None:
    whole = b"GET /v1/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    with connection(serve_rest(header_ms_max=50), whole + b"GET /v1/hea") as slow:
        answer = received(slow)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.count(b"HTTP/1.1") == 1


def test_a_connection_in_use_is_not_ended(serve_rest: Serve) -> None:
    rest = serve_rest(header_ms_max=50)
    first = begin(rest.client)
    threading.Event().wait(0.2)  # longer than a head may take: idling between requests has another limit
    assert rest.client.get(f"/v1/transactions/{first}").status_code == 200
    assert closed(rest) == {}


def test_a_body_that_does_not_come_in_time_is_refused(serve_rest: Serve) -> None:
    with connection(serve_rest(body_ms_max=50), BEGIN + b"Content-Length: 100\r\n\r\n{") as slow:
        answer = received(slow)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"body-too-slow" in answer


@contextlib.contextmanager
def deaf(rest: RunningRest, asked: bytes, count: int = 1) -> Iterator[None]:
    """So many clients that ask and read nothing, where the system keeps next to nothing of the answers for them."""
    rest.listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)  # those that are accepted inherit it
    with contextlib.ExitStack() as open_ones:
        deaf_ones = [open_ones.enter_context(socket.socket()) for _ in range(count)]
        for connected in deaf_ones:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connected.connect(rest.listening.getsockname())
        await_connections(rest, count)  # before they ask: on a slow machine the first is gone before the last has come
        for connected in deaf_ones:
            connected.sendall(asked)
        yield


def test_who_does_not_read_its_answers_holds_no_place_of_others(serve_rest: Serve) -> None:
    rest = serve_rest(requests_max=2, unread_ms_max=50)
    with deaf(rest, OPENAPI + b"\r\n" + OPENAPI + b"\r\n", count=3):
        await_connections(rest, 0)
        assert rest.client.post("/v1/oracle/begin").status_code == 200
    assert set(closed(rest)) == {UNREAD}, "and some of them may have been told in a few words that it is overloaded"


def test_who_does_not_read_its_last_answer_is_gone_in_time_as_well(serve_rest: Serve) -> None:
    """What is left of it may be less than a transport keeps: closing a connection waits for its reader."""
    rest = serve_rest(unread_ms_max=50)
    with deaf(rest, OPENAPI + b"Connection: close\r\n\r\n"):
        await_connections(rest, 0)


def test_others_are_served_while_many_send_slowly(serve_rest: Serve) -> None:
    rest = serve_rest(connections_max=20, requests_max=2)
    with contextlib.ExitStack() as slow:
        for number in range(60):
            first = [b"", b"POST /v1/oracle/be", BEGIN, BEGIN + b"Content-Length: 9\r\n\r\n{"][number % 4]
            slow.enter_context(connection(rest, first))
        for _ in range(5):
            assert rest.client.post("/v1/oracle/begin").status_code == 200


@pytest.mark.parametrize("first", [b"", b"GET /v1/hea", BEGIN + b"Content-Length: 9\r\n\r\n{"])
def test_the_longest_waiting_makes_room(serve_rest: Serve, first: bytes) -> None:
    rest = serve_rest(connections_max=5)
    with contextlib.ExitStack() as slow:
        connected = [slow.enter_context(connection(rest, first)) for _ in range(8)]
        assert rest.client.post("/v1/oracle/begin").status_code == 200
        assert received(connected[0]) == b""
        assert closed(rest) == {NO_ROOM: 4}
        gauges = {
            family.name: family.samples[0].value for family in rest.app.state.metering.collect() if family.samples
        }
        assert (gauges["pythia_rest_connections"], gauges["pythia_rest_connections_max"]) == (5, 5)


def test_slow_bodies_take_no_place_of_whole_requests(serve_rest: Serve) -> None:
    rest = serve_rest(requests_max=1)
    with contextlib.ExitStack() as slow:
        for _ in range(5):
            slow.enter_context(connection(rest, BEGIN + b"Content-Length: 9\r\n\r\n{"))
        assert rest.client.post("/v1/oracle/begin").status_code == 200


def test_a_large_body_is_refused_announced_or_not(serve_rest: Serve) -> None:
    rest = serve_rest(body_bytes_max=100)
    assert refused(rest.client.post("/v1/oracle/begin", content=b"x" * 101)) == (413, "body-too-large")
    parts = (b"x" * 30 for _ in range(5))
    assert refused(rest.client.post("/v1/oracle/begin", content=parts)) == (413, "body-too-large")


def test_after_a_request_of_two_lengths_nothing_more_is_taken_from_its_connection(serve_rest: Serve) -> None:
    another = b"POST /v1/oracle/begin HTTP/1.1\r\nHost: x\r\n\r\n"
    lengths = b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % (len(another) + 5)
    with connection(serve_rest(), BEGIN + lengths + b"0\r\n\r\n" + another) as smuggling:
        answer = received(smuggling)
    assert answer.startswith(b"HTTP/1.1 422")
    assert b"say two things of one body" in answer
    assert answer.count(b"HTTP/1.1") == 1


def test_bodies_are_bounded_together(serve_rest: Serve) -> None:
    rest = serve_rest(body_bytes_max=100, bodies_bytes_max=100)
    with connection(rest, BEGIN + b"Content-Length: 100\r\n\r\n" + b"x" * 90):
        answers = [rest.client.post("/v1/oracle/begin", content=b" " * 50) for _ in range(20)]
    assert (503, "overloaded") in [refused(answer) for answer in answers if answer.status_code != 200]
    assert rest.client.post("/v1/oracle/begin", json={"count": 1}).status_code == 200


def test_so_many_requests_at_once_and_no_more(serve_rest: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    rest = serve_rest(requests_max=1)
    id = begin(rest.client)
    held = rest.app.state.services.held_transactions._held[int(id)]
    reading, go_on = threading.Event(), threading.Event()

    def slowly(*_: Any) -> dict[bytes, bytes]:
        reading.set()
        assert go_on.wait(WAIT_S)
        return {}

    monkeypatch.setattr(held.transaction, "get", slowly)
    path = f"{rest.url}/v1/transactions/{id}/tables/accounts/rows/r"
    reader = threading.Thread(target=lambda: httpx.get(path, timeout=WAIT_S))
    reader.start()
    assert reading.wait(WAIT_S)
    answer = rest.client.post("/v1/oracle/begin")
    assert refused(answer) == (503, "overloaded")
    assert answer.headers["retry-after"] == "1"
    assert rest.client.get("/v1/health/live").status_code == 200
    go_on.set()
    reader.join(WAIT_S)
    assert rest.client.post("/v1/oracle/begin").status_code == 200


def test_who_finds_all_threads_busy_for_too_long_is_told_so_and_nothing_was_done(
    serve_rest: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = serve_rest(threads_max=1, deadline_ms=50)
    slow, other = begin(rest.client), begin(rest.client)
    reading, go_on = threading.Event(), threading.Event()

    def slowly(*_: Any) -> dict[bytes, bytes]:
        reading.set()
        assert go_on.wait(WAIT_S)
        return {}

    monkeypatch.setattr(rest.app.state.services.held_transactions._held[int(slow)].transaction, "get", slowly)
    path = f"{rest.url}/v1/transactions/{slow}/tables/accounts/rows/r"
    reader = threading.Thread(target=lambda: httpx.get(path, timeout=WAIT_S))
    reader.start()
    assert reading.wait(WAIT_S)
    for answer in (
        rest.client.post("/v1/transactions"),
        rest.client.put(f"/v1/transactions/{other}/tables/accounts/rows/r", json={"values": {"d:a": "x"}}),
        rest.client.post(f"/v1/transactions/{other}/commit"),
        rest.client.delete(f"/v1/transactions/{other}"),
    ):
        assert refused(answer) == (503, "overloaded")
        assert answer.headers["retry-after"] == "1"
        assert "threads_max" in answer.json()["detail"]
    assert rest.client.get("/v1/status").json()["open_transactions"] == 2
    assert rest.client.get(f"/v1/transactions/{other}").json()["written_bytes"] == 0
    go_on.set()
    reader.join(WAIT_S)
    assert rest.client.post(f"/v1/transactions/{other}/commit").status_code == 200


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"transactions_max": 0}, "larger than 0, not 0"),
        ({"threads_max": 1_000}, "256 at most"),
        ({"body_bytes_max": 200_000_000}, "more than bodies_bytes_max"),
        ({"transactions_bytes_max": 10}, "more than transactions_bytes_max"),
    ],
)
def test_limits_that_cannot_work_are_refused_with_what_to_do(limits: dict[str, int], reason: str) -> None:
    with pytest.raises(InvalidLimit, match=reason):
        RestLimits(**limits)
