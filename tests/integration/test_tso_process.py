"""Two real oracle processes on real ZooKeeper and HBase: serve, hand over, die and be replaced."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from commit_table import Aborted, Committed, Undecided
from tests.integration.oracle_processes import SHORT_LEASE_MS
from wire import (
    AbortRequest,
    BeginReply,
    BeginRequest,
    CommitReply,
    CommitRequest,
    FrameDecoder,
    HelloReply,
    HelloRequest,
    Message,
    NotPrimary,
    OutcomeReply,
    Reason,
    decode,
    encode,
)

if TYPE_CHECKING:
    from tests.integration.conftest import Installation

pytestmark = pytest.mark.integration

WAIT_S = 60.0


class Connection:
    """A blocking client of one oracle."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=WAIT_S)
        self._decoder = FrameDecoder()
        assert isinstance(self.ask(HelloRequest()), HelloReply)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, message: Message) -> Message:
        self._socket.sendall(encode(message, 1))
        while True:
            data = self._socket.recv(65_536)
            assert data, "the connection was closed"
            for frame in self._decoder.feed(data):
                return decode(frame)

    def begin(self, count: int = 1) -> BeginReply:
        begun = self.ask(BeginRequest(count))
        assert isinstance(begun, BeginReply)
        return begun

    def commit(self, begun: BeginReply, cells: list[list[int]]) -> CommitReply:
        starts = begun.first_start_timestamp + np.arange(len(cells))
        offsets = np.cumsum([0, *map(len, cells)])
        flat = np.array([cell for write_set in cells for cell in write_set], "<u8")
        reply = self.ask(
            CommitRequest(starts, np.full(len(cells), begun.snapshot), np.zeros(len(cells), "<i8"), offsets, flat)
        )
        assert isinstance(reply, CommitReply)
        return reply


def test_commits_are_found_in_the_commit_table(installation: Installation) -> None:
    oracle = installation.start("a")
    epoch = oracle.until_primary()
    with Connection(oracle.address) as connection:
        begun = connection.begin(3)
        assert begun.epoch == epoch == begun.snapshot
        starts = [begun.first_start_timestamp + index for index in range(3)]
        reply = connection.commit(begun, [[1, 2**64 - 1], [2**63, 3], [3]])
        assert reply.reasons.tolist() == [Reason.COMMITTED, Reason.COMMITTED, Reason.CONFLICT]
        aborted = connection.ask(AbortRequest(np.array([starts[0], starts[2]])))
        assert aborted == OutcomeReply(np.array([1, 2]), np.array([reply.commit_timestamps[0], 0]))
        assert connection.begin().snapshot >= reply.commit_timestamps.max()
    times = reply.commit_timestamps.tolist()
    assert installation.table.outcomes(starts) == {
        starts[0]: Committed(times[0]),
        starts[1]: Committed(times[1]),
        starts[2]: Aborted(),
    }


def test_a_planned_stop_hands_over_and_an_old_transaction_is_too_old_but_not_lost(installation: Installation) -> None:
    first = installation.start("a")
    epoch = first.until_primary()
    second = installation.start("b")
    with Connection(second.address) as connection:
        answer = connection.ask(BeginRequest(1))
        while answer == NotPrimary():  # it has not read the lease yet
            answer = connection.ask(BeginRequest(1))
        assert answer == NotPrimary(first.address, epoch)
    with Connection(first.address) as connection:
        committed, open_still = connection.begin(), connection.begin()
        time = int(connection.commit(committed, [[1]]).commit_timestamps[0])
    assert first.end(signal.SIGTERM) == 0
    later = second.until_primary()
    assert later > max(time, open_still.first_start_timestamp)
    with Connection(second.address) as connection:
        assert connection.commit(open_still, [[2]]).reasons.tolist() == [Reason.TOO_OLD]
        old = np.array([committed.first_start_timestamp, open_still.first_start_timestamp])
        assert connection.ask(AbortRequest(old)) == OutcomeReply(np.array([1, 2]), np.array([time, 0]))
        assert connection.commit(connection.begin(), [[1]]).reasons.tolist() == [Reason.COMMITTED]
    assert second.end(signal.SIGTERM) == 0


def test_a_killed_primary_is_replaced_after_its_lease(installation: Installation) -> None:
    first = installation.start("a", SHORT_LEASE_MS)
    first.until_primary()
    second = installation.start("b", SHORT_LEASE_MS)
    with Connection(first.address) as connection:
        begun = connection.begin(2)
        time = int(connection.commit(begun, [[1]]).commit_timestamps[0])
    first.end(signal.SIGKILL)
    later = second.until_primary()
    assert later > time
    start = begun.first_start_timestamp
    assert installation.table.outcomes([start, start + 1]) == {start: Committed(time), start + 1: Undecided()}
    with Connection(second.address) as connection:
        assert connection.commit(connection.begin(), [[1]]).reasons.tolist() == [Reason.COMMITTED]


def test_a_paused_primary_answers_nothing_after_its_lease(installation: Installation) -> None:
    first = installation.start("a", SHORT_LEASE_MS)
    first.until_primary()
    second = installation.start("b", SHORT_LEASE_MS)
    with Connection(first.address) as connection:
        begun = connection.begin()
        os.kill(first.process.pid, signal.SIGSTOP)
        second.until_primary()
        os.kill(first.process.pid, signal.SIGCONT)
        offsets, cells = np.array([0, 1]), np.array([1], "<u8")
        starts, snapshots = np.array([begun.first_start_timestamp]), np.array([begun.snapshot])
        answer = connection.ask(CommitRequest(starts, snapshots, np.zeros_like(starts), offsets, cells))
        assert isinstance(answer, NotPrimary)
    assert first.expect("(standby)") == "standby"
    assert installation.table.outcome(begun.first_start_timestamp) == Undecided()


def test_status_shows_primary_and_standby(installation: Installation) -> None:
    first = installation.start("a")
    epoch = first.until_primary()
    installation.start("b")
    command = [sys.executable, "-m", "tso", "status", "--root", installation.root, "--json"]
    shown = subprocess.run(
        [*command, "--zookeeper", installation.services.zookeeper],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=True,
    )
    roles = {member["holder"]: (member["role"], member["epoch"]) for member in json.loads(shown.stdout)["members"]}
    assert roles["a"] == ("primary", epoch)
    assert roles.get("b", ("standby", 0)) == ("standby", 0)


def test_an_address_in_use_is_told(installation: Installation) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        command = [sys.executable, "-m", "tso", "serve", "--root", installation.root]
        where = ["--zookeeper", installation.services.zookeeper, "--thrift", installation.services.thrift]
        port = taken.getsockname()[1]
        ended = subprocess.run(
            [*command, *where, "--listen", f"127.0.0.1:{port}"],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
    assert ended.returncode == 1
    assert "error: " in ended.stderr
    assert "Traceback" not in ended.stderr
