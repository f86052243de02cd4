"""Starting detached processes, recognising them later, and ending them.

Invariant: a signal is sent only through a descriptor of the process itself (pidfd), opened before /proc was asked
whether the pid is still ours by start time and mark; so a pid that the system gave to another process is never hit.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ARGUMENTS_SECONDS_MAX = 10.0
ARGUMENTS_POLL_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """A process by its pid and its start time, in clock ticks since boot (field 22 of /proc/PID/stat)."""

    pid: int
    start_ticks: int


def spawn(command: Sequence[str], environment: Mapping[str, str], output: Path) -> ProcessRecord:
    """Start ``command`` in a session of its own, its output appended to the file ``output``.

    Raises:
        OSError: it cannot be started.
    """
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    pid = os.posix_spawn(command[0], list(command), dict(environment), file_actions=actions, setsid=True)
    found = _state_and_start(pid)
    _wait_for_arguments(pid)
    return ProcessRecord(pid, found[1] if found else 0)


def _wait_for_arguments(pid: int) -> None:
    """Wait for what the kernel shows a moment after it lets the parent go on: the arguments, with the mark in them."""
    deadline = time.monotonic() + ARGUMENTS_SECONDS_MAX
    while _arguments(pid) == [""] and time.monotonic() < deadline:
        found = _state_and_start(pid)
        if found is None or found[0] in "ZX":
            return
        time.sleep(ARGUMENTS_POLL_SECONDS)


def _state_and_start(pid: int) -> tuple[str, int] | None:
    fields = _fields_from_the_third(pid)
    return None if fields is None else (fields[0], int(fields[19]))


def _fields_from_the_third(pid: int) -> list[str] | None:
    """Of /proc/PID/stat."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The second field, the name, is in brackets and may itself hold blanks and brackets.
    return text.rpartition(")")[2].split()


def how_it_ended(record: ProcessRecord) -> str:
    """In words that follow its name: how is known only until the parent that started it has asked the kernel."""
    fields = _fields_from_the_third(record.pid)
    if fields is None or fields[0] != "Z" or int(fields[19]) != record.start_ticks:
        return "is gone"
    try:
        code = os.waitstatus_to_exitcode(int(fields[49]))
    except ValueError:  # a status that says neither
        return "is gone"
    return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _arguments(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="surrogateescape").split("\0")
    except OSError:
        return []


def is_alive(record: ProcessRecord, mark: str) -> bool:
    """Whether the recorded process still runs: same pid, same start time, and ``mark`` among its arguments."""
    found = _state_and_start(record.pid)
    if found is None or found[0] in "ZX" or found[1] != record.start_ticks:
        return False
    return mark in _arguments(record.pid)


def find_marked(mark: str) -> tuple[ProcessRecord, ...]:
    """All processes of this user with ``mark`` among their arguments, whoever recorded them."""
    records = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and mark in _arguments(int(entry.name)):
            found = _state_and_start(int(entry.name))
            if found is not None and found[0] not in "ZX" and _is_own(entry):
                records.append(ProcessRecord(int(entry.name), found[1]))
    return tuple(records)


def _is_own(entry: Path) -> bool:
    try:
        return entry.stat().st_uid == os.getuid()
    except OSError:
        return False


def send(record: ProcessRecord, mark: str, number: signal.Signals) -> None:
    """Send a signal to the process, unless it is gone."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(record.pid)
        try:
            if is_alive(record, mark):
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def wait_gone(record: ProcessRecord, timeout_seconds: float) -> bool:
    """Wait until the process has ended with all its threads; False when it has not within the limit.

    The state in /proc is no ground for that: it already says zombie when only the first of many threads has ended.
    """
    try:
        descriptor = os.pidfd_open(record.pid)
    except ProcessLookupError:
        return True
    try:
        found = _state_and_start(record.pid)
        if found is not None and found[1] == record.start_ticks:
            poller = select.poll()
            poller.register(descriptor, select.POLLIN)
            if not poller.poll(timeout_seconds * 1_000):
                return False
            _reap(record.pid)
    finally:
        os.close(descriptor)
    return True


def _reap(pid: int) -> None:
    """Where the process is a child of this one, take its exit status so that it does not linger as a zombie."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
