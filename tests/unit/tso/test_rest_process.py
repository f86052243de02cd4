"""The process beside an oracle: started again when it ends, and gone with the oracle, however that ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import httpx
import pytest

from tests.imports import ROOT
from tso import rest_process
from tso.rest_process import RestProcess, address_of, listen, rest_command

WAIT_S = 60.0

CHILD = """
import os, sys
with open(sys.argv[1], "a") as log:
    print(os.getpid(), *sys.argv[2:], file=log, flush=True)
code = int(open(sys.argv[1] + ".code").read() or 0)
if code:
    sys.exit(code)
while sys.stdin.read(1):
    print(os.getpid(), flush=True)
"""
"""It ends with its standard input, and holds as many transactions as it has a number."""


@pytest.fixture
def started(tmp_path: Path) -> Path:
    """Where children note that they started; beside it, the code with which they end at once (0: they wait)."""
    log = tmp_path / "started"
    log.touch()
    (tmp_path / "started.code").write_text("0")
    return log


@contextlib.contextmanager
def supervisor(started: Path) -> Iterator[RestProcess]:
    with contextlib.closing(listen("127.0.0.1", 0)) as listening:
        yield RestProcess(listening, ["--root", "/r"], command=[sys.executable, "-c", CHILD, str(started)])


async def until_started(started: Path, times: int) -> list[list[str]]:
    for _ in range(int(WAIT_S / 0.02)):
        lines = started.read_text().splitlines()
        if len(lines) >= times:
            return [line.split() for line in lines]
        await asyncio.sleep(0.02)
    raise AssertionError(f"started {lines}, not {times} times")


async def until_held(rest: RestProcess, started: Path) -> list[str]:
    """Until the first one runs, and is known here to; what it wrote. It may run before its parent learns of it."""
    (first,) = await until_started(started, 1)
    async with asyncio.timeout(WAIT_S):
        while rest._child is None:
            await asyncio.sleep(0.02)
    return first


def is_alive(process_id: int) -> bool:
    try:
        return Path(f"/proc/{process_id}/stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def until_gone(process_id: int) -> None:
    for _ in range(int(WAIT_S / 0.02)):
        if not is_alive(process_id):
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"process {process_id} is still there")


def test_it_is_told_its_oracle_and_ends_with_the_one_who_watches_it(started: Path) -> None:
    async def scenario(rest: RestProcess) -> None:
        running = asyncio.create_task(rest.run("oracle:1"))
        ((process_id, *options),) = await until_started(started, 1)
        assert options[0] == "--listening-socket"
        assert options[2:] == ["--oracle", "oracle:1", "--root", "/r"]
        running.cancel()
        await asyncio.wait([running])
        assert not is_alive(int(process_id))

    with supervisor(started) as rest:
        asyncio.run(scenario(rest))


def test_one_that_ends_is_started_again_after_a_pause_that_grows(
    started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        if seconds != 0.02:
            pauses.append(seconds)
            seconds = 0
        await sleep(seconds)

    async def scenario(rest: RestProcess) -> None:
        running = asyncio.create_task(rest.run("oracle:1"))
        await until_started(started, 4)
        running.cancel()
        await asyncio.wait([running])

    (started.parent / "started.code").write_text("1")
    monkeypatch.setattr(rest_process, "BACK_OFF_MS_MAX", 300)
    monkeypatch.setattr(asyncio, "sleep", noted)
    with supervisor(started) as rest:
        asyncio.run(scenario(rest))
    assert pauses[:3] == [0.1, 0.2, 0.3]


def test_one_that_cannot_work_is_not_started_again_and_nobody_waits_for_it(
    started: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (started.parent / "started.code").write_text(str(rest_process.CANNOT_WORK_CODE))
    listening = listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    rest = RestProcess(listening, [], command=[sys.executable, "-c", CHILD, str(started)])
    with caplog.at_level(logging.ERROR):
        asyncio.run(asyncio.wait_for(rest.run("oracle:1"), WAIT_S))
    assert len(started.read_text().splitlines()) == 1
    assert "no REST beside this oracle any more" in caplog.text
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), WAIT_S)


PARENT = """
import asyncio, sys
from tso.rest_process import RestProcess, listen
rest = RestProcess(listen("127.0.0.1", 0), [], command=[sys.executable, "-c", sys.argv[1], sys.argv[2]])
asyncio.run(rest.run("oracle:1"))
"""


def test_a_cancellation_that_comes_as_the_child_ends_is_not_swallowed() -> None:
    class Ending:
        stdin = None

        def __init__(self) -> None:
            self.ended = asyncio.get_running_loop().create_future()

        async def wait(self) -> int:
            code: int = await self.ended
            return code

    async def scenario() -> None:
        child = Ending()
        ending = asyncio.create_task(rest_process._end(cast(asyncio.subprocess.Process, child)))
        for _ in range(3):
            await asyncio.sleep(0)
        child.ended.set_result(0)
        await asyncio.sleep(0)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending

    asyncio.run(scenario())


def test_it_is_asked_what_it_holds(started: Path) -> None:
    async def scenario(rest: RestProcess) -> None:
        assert await rest.transactions_held() == 0
        running = asyncio.create_task(rest.run("oracle:1"))
        process_id, *_ = await until_held(rest, started)
        for _ in range(2):
            assert await rest.transactions_held() == int(process_id)
        os.kill(int(process_id), signal.SIGKILL)
        running.cancel()
        await asyncio.wait([running])
        assert await rest.transactions_held() == 0

    with supervisor(started) as rest:
        asyncio.run(scenario(rest))


CHILD_THAT_TELLS = """
import sys
with open(sys.argv[1], "a") as log:
    print("up", file=log, flush=True)
while sys.stdin.read(1):
    print(open(sys.argv[1] + ".held").read(), flush=True)
    with open(sys.argv[1], "a") as log:
        print("said", file=log, flush=True)
"""


def test_one_that_is_too_busy_to_say_what_it_holds_is_not_taken_for_one_that_holds_nothing(
    started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = started.parent / "started.held"

    async def scenario(rest: RestProcess) -> None:
        running = asyncio.create_task(rest.run("oracle:1"))
        await until_held(rest, started)
        held.write_text("0")
        assert await rest.transactions_held() == 0
        assert rest._child is not None
        process_id = rest._child.pid
        os.kill(process_id, signal.SIGSTOP)
        with monkeypatch.context() as hurried:
            hurried.setattr(rest_process, "ANSWER_MS_MAX", 10)
            assert [await rest.transactions_held() for _ in range(2)] == [1, 1]
        os.kill(process_id, signal.SIGCONT)
        await until_started(started, 4)
        held.write_text("5")
        assert await rest.transactions_held() == 5, "what it said late is old"
        running.cancel()
        await asyncio.wait([running])

    with contextlib.closing(listen("127.0.0.1", 0)) as listening:
        command = [sys.executable, "-c", CHILD_THAT_TELLS, str(started)]
        asyncio.run(asyncio.wait_for(scenario(RestProcess(listening, [], command=command)), WAIT_S))


def test_it_ends_with_a_parent_that_is_killed(started: Path) -> None:
    async def scenario(parent: subprocess.Popen[bytes]) -> None:
        ((process_id, *_),) = await until_started(started, 1)
        parent.send_signal(signal.SIGKILL)
        parent.wait(WAIT_S)
        await until_gone(int(process_id))

    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", PARENT, CHILD, str(started)], env=environment) as parent:
        asyncio.run(scenario(parent))


def test_the_real_one_serves_on_what_it_is_given_and_ends_with_its_standard_input() -> None:
    with contextlib.closing(listen("127.0.0.1", 0)) as listening:
        descriptor = listening.fileno()
        options = ["--oracle", "127.0.0.1:1", "--thrift", "127.0.0.1:1", "--root", "/pythia"]
        command = [sys.executable, "-m", "rest", "--listening-socket", str(descriptor), *options]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[descriptor], env=environment
        ) as child:
            url = f"http://{address_of(listening)}"
            assert httpx.get(f"{url}/v1/health/live", timeout=WAIT_S, trust_env=False).status_code == 200
            assert httpx.get(f"{url}/v1/status", timeout=WAIT_S, trust_env=False).json()["role"] == "silent"
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(rest_process.HOLDS_HOW_MANY)
            child.stdin.flush()
            assert child.stdout.readline() == b"0\n"
            child.stdin.close()
            assert child.wait(WAIT_S) == 0


def test_the_real_one_says_in_the_log_which_limit_cannot_work() -> None:
    command = [sys.executable, "-m", "rest", "--listening-socket", "0", "--oracle", "h:1", "--thrift", "h:1"]
    done = subprocess.run(
        [*command, "--root", "/pythia", "--limit", "transactions_max=0", "--log-format", "json"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert done.returncode == rest_process.CANNOT_WORK_CODE
    (line,) = map(json.loads, done.stderr.splitlines())
    assert (line["level"], line["role"], line["logger"]) == ("error", "rest", "__main__")
    assert "transactions_max needs a whole number from 1 to" in line["message"]


def test_what_lies_where_the_oracle_was_started_is_not_taken_for_rest(tmp_path: Path) -> None:
    (tmp_path / "rest.py").write_text("print('somebody else')")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [*rest_command(["/usr/bin"], str(tmp_path)), "--help"]
    shown = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert "somebody else" not in shown.stdout
    assert "--listening-socket" in shown.stdout
    assert rest_command([str(tmp_path), "/usr/bin"], str(tmp_path)) == [sys.executable, "-m", "rest"]
