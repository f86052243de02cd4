"""The JVMs of a cluster: started, waited for, stopped. Callers hold the directory's lock.

Invariant: a process is in the state file as soon as it was started, and is out of it only once it is gone.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import resources
from pathlib import Path

from devcluster.configuration import (
    Part,
    class_path,
    hbase_settings,
    mark,
    site_file,
    start_command,
    stop_command,
)
from devcluster.errors import DevClusterError, DiskFull, NotReady, PortTaken, StartFailed, StopFailed
from devcluster.processes import ProcessRecord, find_marked, how_it_ended, is_alive, send, spawn, wait_gone
from devcluster.readiness import hbase_answers, listens, prove, zookeeper_answers
from devcluster.settings import Progress, Step
from devcluster.state import STATE_NAME, ClusterState, write_state

KILL_TIMEOUT_SECONDS = 10.0
GATEWAY_STOP_SECONDS_MAX = 5.0
POLL_SECONDS = 0.1
TAIL_LINES = 15
TAIL_LINE_CHARACTERS_MAX = 300
TAIL_BYTES = 64 * 1_024
TITLES: dict[Part, str] = {
    "hbase": "HBase (with ZooKeeper inside)",
    "gateway": "the Thrift gateway",
    "gateway2": "the Thrift 2 gateway",
}

_PORT_TROUBLE = re.compile(r"Address already in use|Could not start ZK at requested port|BindException")
_DISK_TROUBLE = re.compile(r"No space left on device|Disk quota exceeded")
_LOG_SUFFIXES = (".log", ".out")
_GIVEN_UP = "***** ABORTING "  # the master, or the region server in it


def write_configuration(directory: Path, zookeeper_port: int) -> None:
    """Lay out the directory and write what the servers read at their start.

    Raises:
        OSError: the directory cannot be written.
    """
    for name in ("conf", "data", "logs", "tmp"):
        (directory / name).mkdir(exist_ok=True)
    (directory / "conf" / "hbase-site.xml").write_bytes(site_file(hbase_settings(directory, zookeeper_port)))
    for name in ("log4j2.properties", "log4j.properties"):
        (directory / "conf" / name).write_bytes(resources.files("devcluster").joinpath(name).read_bytes())


def start(directory: Path, state: ClusterState, part: Part) -> ClusterState:
    """Start one part and record it; the state with it in. Its last logs are kept under another name."""
    for suffix in _LOG_SUFFIXES:
        old = directory / "logs" / f"{part}{suffix}"
        with suppress(FileNotFoundError):
            old.replace(old.with_name(f"{old.name}.previous"))
    command = start_command(part, Path(state.java), directory, state.heap_mebibytes[part], state.port(part))
    record = spawn(command, _environment(directory, state), directory / "logs" / f"{part}.out")
    state = state.with_process(part, record)
    write_state(directory, state)
    return state


def _environment(directory: Path, state: ClusterState) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HBASE_", "HADOOP_"))}
    return kept | {"CLASSPATH": class_path(directory, [Path(jar) for jar in state.jars])}


def alive(directory: Path, state: ClusterState, part: Part) -> bool:
    """Whether the recorded process of ``part`` runs."""
    record = state.processes.get(part)
    return record is not None and is_alive(record, mark(directory))


def wait_ready(directory: Path, state: ClusterState, progress: Progress) -> None:
    """Wait until ZooKeeper answers, the master answers, and a put and a get went through.

    Raises:
        StartFailed, PortTaken, DiskFull: a server died meanwhile.
        NotReady: the limit passed.
    """
    deadline = time.monotonic() + state.ready_timeout_seconds
    stages: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("waiting for ZooKeeper", lambda: zookeeper_answers(state.zookeeper_port)),
        ("waiting for HBase behind its Thrift gateway", lambda: hbase_answers(state.thrift_port)),
        ("putting and getting a row", lambda: prove(state.thrift_port)),
    )
    if state.thrift2_port is not None:
        stages += (("waiting for the Thrift 2 gateway", lambda: listens(state.port("gateway2"))),)
    for number, (text, reached) in enumerate(stages):
        progress(Step(text, number, len(stages)))
        while not reached():
            _check_alive(directory, state)
            if time.monotonic() >= deadline:
                raise NotReady(
                    f"{text} took longer than {state.ready_timeout_seconds:.0f} s; allow more time, or see "
                    f"{directory / 'logs'}. {_tail_of(directory, 'hbase')}"
                )
            time.sleep(POLL_SECONDS)
    # A stranger on one of the ports could have answered in place of a server of ours that failed to bind.
    _check_alive(directory, state)


def _check_alive(directory: Path, state: ClusterState) -> None:
    for part in state.parts:
        if not _goes_on(directory, state, part):
            raise explain_death(directory, state, part)


def _goes_on(directory: Path, state: ClusterState, part: Part) -> bool:
    """It runs, and has not given up: that may leave its JVM behind, waiting for a ZooKeeper that went with it."""
    return alive(directory, state, part) and _GIVEN_UP not in _log_text(directory, part)


def explain_death(directory: Path, state: ClusterState, part: Part) -> DevClusterError:
    """Why a part that was started is no more, with the tail of its log."""
    text = _log_text(directory, part)
    if _DISK_TROUBLE.search(text):
        return DiskFull(f"{TITLES[part]} found the disk that holds {directory} full; make room and try again")
    if _PORT_TROUBLE.search(text):
        return PortTaken(
            f"another process took port {state.port(part)} before {TITLES[part]} could; try again or give another port"
        )
    return StartFailed(f"{TITLES[part]} died while it was starting. {_tail_of(directory, part)}")


def why_gone(directory: Path, state: ClusterState, part: Part) -> str | None:
    """What is known of the end of a part that was started; None where it goes on, or never was."""
    record = state.processes.get(part)
    if record is None or _goes_on(directory, state, part):
        return None
    how = "has given up" if alive(directory, state, part) else how_it_ended(record)
    return f"{TITLES[part]} {how}. {_tail_of(directory, part)}"


def _log_text(directory: Path, part: Part) -> str:
    return "\n".join(read_tail(directory / "logs" / f"{part}{suffix}") for suffix in _LOG_SUFFIXES)


def _tail_of(directory: Path, part: Part) -> str:
    before, given_up, after = _log_text(directory, part).partition(_GIVEN_UP)
    lines = (given_up + after).splitlines()[:TAIL_LINES] or before.splitlines()[-TAIL_LINES:]
    shown = [line[:TAIL_LINE_CHARACTERS_MAX] for line in lines if line.strip()]
    return "From its log:\n  " + "\n  ".join(shown or ["(empty)"])


def read_tail(path: Path) -> str:
    """The last 64 KiB of a log, empty where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def stop(directory: Path, state: ClusterState, part: Part, *, kill: bool) -> None:
    """End one part: by asking, within the limit of the state, and after that, or with ``kill`` at once, by SIGKILL.

    Raises:
        StopFailed: it is there even after that.
    """
    record = state.processes.get(part)
    if record is None or not is_alive(record, mark(directory)):
        return
    if not kill:
        _ask_to_stop(directory, state, part, record)
    end(directory, [record])


def _ask_to_stop(directory: Path, state: ClusterState, part: Part, record: ProcessRecord) -> None:
    deadline = time.monotonic() + state.stop_timeout_seconds
    if part == "hbase" and _ask_hbase(directory, state):
        wait_gone(record, max(0.0, deadline - time.monotonic()))
        return
    send(record, mark(directory), signal.SIGTERM)
    wait_gone(record, min(GATEWAY_STOP_SECONDS_MAX, max(0.0, deadline - time.monotonic())))


def _ask_hbase(directory: Path, state: ClusterState) -> bool:
    """Have the master close all regions and end; False when it could not be asked."""
    try:
        with (directory / "logs" / "stop.out").open("ab") as output:
            answer = subprocess.run(
                stop_command(Path(state.java), directory),
                env=_environment(directory, state),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=state.stop_timeout_seconds,
                check=False,
            )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0


def end(directory: Path, records: Sequence[ProcessRecord]) -> None:
    """Kill processes of this cluster that are still there.

    Raises:
        StopFailed: one is there even after that.
    """
    for record in records:
        send(record, mark(directory), signal.SIGKILL)
    for record in records:
        if not wait_gone(record, KILL_TIMEOUT_SECONDS):
            raise StopFailed(f"process {record.pid} of the cluster in {directory} does not end; end it by hand")


def remains(directory: Path) -> tuple[ProcessRecord, ...]:
    """All processes of the cluster in ``directory``, recorded or not: a start may be cut off before it records one."""
    return find_marked(mark(directory))


def clear_remains(directory: Path) -> int:
    """End what an interrupted start or a crash left of the cluster in ``directory``; how many processes that were.

    Raises:
        StopFailed: one of them does not end.
        OSError: the state file cannot be removed.
    """
    left = remains(directory)
    end(directory, left)
    with suppress(FileNotFoundError):
        (directory / STATE_NAME).unlink()
    return len(left)
