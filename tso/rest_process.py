"""The REST process beside an oracle: started, started again when it ends, and ended with the oracle.

The invariant: the listening socket is this process's, so that its address is known before there is a child, and stays
while one child follows another; where none will follow it is closed, so that nobody waits there for an answer. No child
outlives this process, since each ends when the pipe to its standard input does (which the kernel closes even after
SIGKILL). By that pipe it is asked, too, how many transactions it holds: a byte, and a line on its standard output.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
from collections.abc import Sequence

from tso.serving.listening import cannot_listen, written

log = logging.getLogger(__name__)

BACK_OFF_MS_MIN = 100
BACK_OFF_MS_MAX = 10_000
STEADY_MS_MIN = 60_000
"""A child that ran for so long is started again at once, and not after the last wait doubled."""
END_MS_MAX = 8_000
"""How long a child may take to end in order; then it is killed."""
ANSWER_MS_MAX = 1_000
"""How long a child may take to say what it holds."""
HOLDS_HOW_MANY = b"?"
CANNOT_WORK_CODE = 2
"""With which a child ends that another one would only follow."""
NOT_STARTED_CODE = -1
_BACKLOG_CONNECTIONS_MAX = 512


def rest_command(path: Sequence[str], directory: str) -> list[str]:
    """What starts REST. ``path``: where this process finds its modules; ``directory``: in which it runs.

    Python would look for them in the directory first, and whoever has a `rest.py` there would have that run instead.
    Where this process itself was made to look there, as `python -m tso` does, so does the child.
    """
    apart = [] if {"", directory} & set(path) else ["-P"]
    return [sys.executable, *apart, "-m", "rest"]


class RestProcess:
    """Keeps one child running while ``run`` does. ``options`` are those of `python -m rest`."""

    def __init__(self, listening: socket.socket, options: Sequence[str], *, command: Sequence[str] = ()) -> None:
        self._listening = listening
        self._options = list(options)
        self._command = list(command) or rest_command(sys.path, os.getcwd())
        self._child: asyncio.subprocess.Process | None = None
        self._answers_owed = 0

    async def run(self, oracle: str) -> None:
        """Until it is cancelled or cannot work; ``oracle``: the address of the oracle beside which it runs."""
        loop, wait_ms = asyncio.get_running_loop(), BACK_OFF_MS_MIN
        while True:
            started_s = loop.time()
            try:
                code = await self._run_once(oracle)
            except OSError as error:
                log.error("no REST process could be started: %s", str(error))
                code = NOT_STARTED_CODE
            if code == CANNOT_WORK_CODE:
                self._listening.close()
                log.error(
                    "there is no REST beside this oracle any more, and nothing listens at its address: it cannot work "
                    "as it says above; mend that, and start this process anew"
                )
                return
            if (loop.time() - started_s) * 1000 >= STEADY_MS_MIN:
                wait_ms = BACK_OFF_MS_MIN
            log.warning("the REST process ended with code %d: another is started in %d ms", code, wait_ms)
            await asyncio.sleep(wait_ms / 1000)
            wait_ms = min(2 * wait_ms, BACK_OFF_MS_MAX)

    async def transactions_held(self) -> int:
        """How many callers' transactions the child holds open; 0 where there is no child.

        One that does not say, since it is busy or stopped, counts as holding one: nobody may end it for that.
        """
        child = self._child
        if child is None or child.stdin is None or child.stdout is None:
            return 0
        try:
            child.stdin.write(HOLDS_HOW_MANY)
            self._answers_owed += 1
            async with asyncio.timeout(ANSWER_MS_MAX / 1000):
                while self._answers_owed:  # to questions before this one, which it was too late for, too
                    said = await child.stdout.readline()
                    self._answers_owed -= 1
                return int(said)
        except TimeoutError:
            log.warning("the REST process %d has not said for %d ms what it holds", child.pid, ANSWER_MS_MAX)
            return 1
        except (OSError, ValueError) as error:  # it is ending
            log.warning("the REST process %d does not say what it holds: %s", child.pid, repr(error))
            return 0

    async def _run_once(self, oracle: str) -> int:
        descriptor = self._listening.fileno()
        child = await asyncio.create_subprocess_exec(
            *self._command,
            *("--listening-socket", str(descriptor), "--oracle", oracle, *self._options),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=[descriptor],
        )
        log.info("REST is process %d", child.pid)
        self._child, self._answers_owed = child, 0
        try:
            return await child.wait()
        finally:
            self._child = None
            await _end(child)


async def _end(child: asyncio.subprocess.Process) -> None:
    """Close its standard input, and wait; a child that does not end then is killed.

    Not by ``asyncio.wait_for``: before Python 3.12 it swallows a cancellation that comes as the child ends, and whoever
    ends the oracle would wait for good.
    """
    if child.stdin is not None:
        child.stdin.close()
    ending = asyncio.ensure_future(child.wait())
    await asyncio.wait((ending,), timeout=END_MS_MAX / 1000)
    if not ending.done():
        log.warning("the REST process %d did not end in %d ms: it is killed", child.pid, END_MS_MAX)
        with contextlib.suppress(ProcessLookupError):
            child.kill()
    await ending


def listen(host: str, port: int) -> socket.socket:
    """The socket that every child inherits. Raises ``OSError``."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG_CONNECTIONS_MAX)
    except OSError as error:
        raise cannot_listen(host, port, error) from error


def address_of(listening: socket.socket) -> str:
    """``host:port`` that it is bound to."""
    return written(*listening.getsockname()[:2])
