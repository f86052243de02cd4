"""A development cluster as a whole: up, down, status, and one part of it ended and started again.

Invariant: everything that changes a cluster holds the lock in its directory; only a directory that was empty when its
first cluster came up, or that such a cluster left, is ever written to or wiped.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from devcluster import servers
from devcluster.configuration import GATEWAY2_HEAP_MEBIBYTES, PARTS, Part
from devcluster.errors import AlreadyRunning, NotRunning, PortTaken, StateDamaged, UnusableDirectory, disk_errors
from devcluster.jars import OTHER_JARS, check_free_space, ensure_jars, other_jars
from devcluster.java import find_java
from devcluster.locks import file_lock
from devcluster.ports import claim
from devcluster.readiness import hbase_answers, zookeeper_answers
from devcluster.settings import LOOPBACK, ClusterSettings, Progress, Step
from devcluster.state import ClusterState, read_state, write_state

LOCK_NAME = "cluster.lock"
LOCK_WAIT_SECONDS = 300.0
DATA_FREE_MEBIBYTES = 256
START_ATTEMPTS_MAX = 3
_OURS = ("data", "conf", "logs", "tmp")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster: where ZooKeeper and the gateways listen (``host:port``), and the JVMs of the first two.

    ``thrift2``: of the Thrift 2 gateway, where there is one.
    """

    directory: Path
    zookeeper: str
    thrift: str
    hbase_pid: int
    gateway_pid: int
    thrift2: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """What is found in a directory.

    ``running``: all JVMs live and answer; ``partial``: something lives, but not all of it serves; ``stopped``: nothing
    lives, data may be kept; ``absent``: there never was a cluster, or it was wiped. Addresses and pids are None where
    there is none. ``gone``: of each JVM that ended without the cluster being taken down, how, and the end of its log.
    """

    directory: Path
    condition: Literal["running", "partial", "stopped", "absent"]
    zookeeper: str | None = None
    thrift: str | None = None
    hbase_pid: int | None = None
    gateway_pid: int | None = None
    gone: tuple[str, ...] = ()
    thrift2: str | None = None

    def to_fields(self) -> dict[str, str | int | tuple[str, ...] | None]:
        """The same as plain values, for JSON."""
        return asdict(self) | {"directory": str(self.directory)}


@dataclass(frozen=True, slots=True)
class Stopped:
    """What ``down`` did: whether anything ran, and whether the data went."""

    directory: Path
    was_running: bool
    wiped: bool


def up(settings: ClusterSettings, progress: Progress | None = None) -> Cluster:
    """Bring the cluster of a directory up, or return it where it runs and answers; remains are cleared first.

    Raises:
        DevClusterError: one of its kinds, each saying what to do; nothing is left running then.
    """
    tell = progress or _tell_nobody
    with disk_errors(settings.directory), _locked(settings.directory):
        state = _readable_state(settings.directory)
        if state is not None and _answers(settings.directory, state):
            return _same(settings, state)
        if ended := servers.clear_remains(settings.directory):
            tell(Step(f"ended {ended} processes that an earlier start left"))
        java = find_java()
        jars = ensure_jars(java, settings.fetch_timeout_seconds, tell)
        check_free_space(settings.directory, DATA_FREE_MEBIBYTES)
        return _start(settings, java, jars, tell)


def _tell_nobody(step: Step) -> None:
    del step


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    if directory.is_dir() and not (directory / LOCK_NAME).exists() and any(directory.iterdir()):
        raise UnusableDirectory(f"{directory} holds files that are not a cluster's; choose an empty or new directory")
    with file_lock(directory / LOCK_NAME, LOCK_WAIT_SECONDS):
        yield


def _readable_state(directory: Path) -> ClusterState | None:
    """The recorded state; a record that cannot be read counts as none, as marked processes are found without it."""
    with suppress(StateDamaged):
        return read_state(directory)
    return None


def _answers(directory: Path, state: ClusterState) -> bool:
    return (
        state.proved
        and all(servers.alive(directory, state, part) for part in state.parts)
        and zookeeper_answers(state.zookeeper_port)
        and hbase_answers(state.thrift_port)
    )


def _same(settings: ClusterSettings, state: ClusterState) -> Cluster:
    asked = (settings.zookeeper_port, settings.thrift_port)
    have = (state.zookeeper_port, state.thrift_port)
    if any(port not in (0, running) for port, running in zip(asked, have, strict=True)):
        raise AlreadyRunning(
            f"the cluster in {settings.directory} runs with ZooKeeper on port {have[0]} and Thrift on port {have[1]}; "
            "take it down first, or use another directory"
        )
    if settings.thrift2_port is not None and (
        state.thrift2_port is None or settings.thrift2_port not in (0, state.thrift2_port)
    ):
        runs = "without one" if state.thrift2_port is None else f"with one on port {state.thrift2_port}"
        raise AlreadyRunning(
            f"a Thrift 2 gateway was asked for, and the cluster in {settings.directory} runs {runs}; take it down "
            "first, or use another directory"
        )
    others = other_jars()
    if others is not None and tuple(map(str, others)) != state.jars:
        raise AlreadyRunning(
            f"the cluster in {settings.directory} runs other jars than those that {OTHER_JARS} names; "
            "take it down first, or use another directory"
        )
    return _cluster(settings.directory, state)


def _cluster(directory: Path, state: ClusterState) -> Cluster:
    return Cluster(
        directory=directory,
        zookeeper=f"{LOOPBACK}:{state.zookeeper_port}",
        thrift=f"{LOOPBACK}:{state.thrift_port}",
        hbase_pid=state.processes["hbase"].pid,
        gateway_pid=state.processes["gateway"].pid,
        thrift2=_thrift2(state),
    )


def _thrift2(state: ClusterState) -> str | None:
    return None if state.thrift2_port is None else f"{LOOPBACK}:{state.thrift2_port}"


def _start(settings: ClusterSettings, java: Path, jars: tuple[Path, ...], tell: Progress) -> Cluster:
    for _ in range(START_ATTEMPTS_MAX - 1):
        state = _plan(settings, java, jars)
        try:
            return _start_once(settings.directory, state, tell)
        except PortTaken:
            # Between the choice of a port and the bind another process may take it; a port that was given stays.
            if settings.zookeeper_port and settings.thrift_port and settings.thrift2_port != 0:
                raise
    return _start_once(settings.directory, _plan(settings, java, jars), tell)


def _plan(settings: ClusterSettings, java: Path, jars: tuple[Path, ...]) -> ClusterState:
    fixed = [port for port in (settings.thrift_port, settings.thrift2_port) if port]
    zookeeper_port = claim(settings.zookeeper_port, "ZooKeeper", "--zookeeper-port", avoid=fixed)
    thrift_port = claim(settings.thrift_port, "Thrift", "--thrift-port", avoid=(zookeeper_port, *fixed))
    thrift2_port = settings.thrift2_port
    if thrift2_port is not None:
        thrift2_port = claim(thrift2_port, "Thrift 2", "--thrift2-port", avoid=(zookeeper_port, thrift_port))
    return ClusterState(
        zookeeper_port=zookeeper_port,
        thrift_port=thrift_port,
        java=str(java),
        jars=tuple(map(str, jars)),
        heap_mebibytes={
            "hbase": settings.hbase_heap_mebibytes,
            "gateway": settings.gateway_heap_mebibytes,
            "gateway2": GATEWAY2_HEAP_MEBIBYTES,
        },
        ready_timeout_seconds=settings.ready_timeout_seconds,
        stop_timeout_seconds=settings.stop_timeout_seconds,
        thrift2_port=thrift2_port,
    )


def _start_once(directory: Path, state: ClusterState, tell: Progress) -> Cluster:
    tell(Step("starting HBase, ZooKeeper and the Thrift gateway"))
    servers.write_configuration(directory, state.zookeeper_port)
    try:
        # The gateways wait for HBase by themselves, so all JVMs may start at once.
        for part in state.parts:
            state = servers.start(directory, state, part)
        servers.wait_ready(directory, state, tell)
        state = replace(state, proved=True)
        write_state(directory, state)
    except BaseException:
        servers.clear_remains(directory)
        raise
    return _cluster(directory, state)


def down(directory: Path, wipe: bool, progress: Progress | None = None) -> Stopped:
    """Take the cluster of a directory down, and with ``wipe`` delete its data; harmless where there is none.

    Without ``wipe`` HBase is asked to end cleanly, and killed when it has not within the limit it was started with.

    Raises:
        UnusableDirectory: the directory is not a cluster's, or cannot be written.
        StopFailed, Busy: see ``errors``.
    """
    directory = directory.expanduser().resolve()
    tell = progress or _tell_nobody
    if not directory.is_dir() or not any(directory.iterdir()):
        return Stopped(directory, was_running=False, wiped=wipe)
    with disk_errors(directory), _locked(directory):
        was_running = _stop_all(directory, tell, kill=wipe)
        if wipe:
            tell(Step("deleting the data"))
            _wipe(directory)
    return Stopped(directory, was_running, wiped=wipe)


def _stop_all(directory: Path, tell: Progress, *, kill: bool) -> bool:
    state = _readable_state(directory)
    was_running = False
    for part in reversed(PARTS):
        if state is not None and servers.alive(directory, state, part):
            was_running = True
            tell(Step(f"stopping {servers.TITLES[part]}"))
            servers.stop(directory, state, part, kill=kill)
    return servers.clear_remains(directory) > 0 or was_running


def _wipe(directory: Path) -> None:
    for name in _OURS:
        if (directory / name).exists():
            shutil.rmtree(directory / name)
    (directory / LOCK_NAME).unlink()
    # Files that somebody else put there stay, and the directory with them.
    with suppress(OSError):
        os.rmdir(directory)


def status(directory: Path) -> ClusterStatus:
    """What is in a directory now; waits at most a few seconds for answers and takes no lock.

    Raises:
        StateDamaged: the state file cannot be read; ``up`` and ``down`` clear that away.
    """
    directory = directory.expanduser().resolve()
    if not (directory / LOCK_NAME).exists():
        return ClusterStatus(directory, "absent")
    state = read_state(directory)
    if state is None:
        return ClusterStatus(directory, "partial" if servers.remains(directory) else "stopped")
    pids = {part: state.processes[part].pid for part in state.parts if servers.alive(directory, state, part)}
    gone = tuple(why for part in state.parts if (why := servers.why_gone(directory, state, part)))
    if not pids:
        return ClusterStatus(directory, "stopped", gone=gone)
    return ClusterStatus(
        directory,
        "running" if _answers(directory, state) else "partial",
        zookeeper=f"{LOOPBACK}:{state.zookeeper_port}",
        thrift=f"{LOOPBACK}:{state.thrift_port}",
        hbase_pid=pids.get("hbase"),
        gateway_pid=pids.get("gateway"),
        gone=gone,
        thrift2=_thrift2(state),
    )


def stop_part(directory: Path, part: Part, *, kill: bool = False) -> None:
    """End one JVM of a cluster, cleanly or with SIGKILL at once; the others stay. Harmless where it is gone.

    Raises:
        NotRunning: no cluster is recorded in the directory.
        StopFailed, Busy, UnusableDirectory, StateDamaged: see ``errors``.
    """
    directory = directory.expanduser().resolve()
    with disk_errors(directory), _locked(directory):
        servers.stop(directory, _recorded(directory), part, kill=kill)


def start_part(directory: Path, part: Part) -> Cluster:
    """Start one JVM again, on the ports it had, and wait until a put and a get went through; harmless where it lives.

    Raises:
        NotRunning: no cluster is recorded in the directory, or another JVM of it does not run (``up`` starts all).
        StartFailed, NotReady, PortTaken, DiskFull, Busy: see ``errors``.
    """
    directory = directory.expanduser().resolve()
    with disk_errors(directory), _locked(directory):
        state = _recorded(directory)
        for other in state.parts:
            if other != part and not servers.alive(directory, state, other):
                raise NotRunning(f"{servers.TITLES[other]} in {directory} does not run; bring the whole cluster up")
        if not servers.alive(directory, state, part):
            claim(state.port(part), servers.TITLES[part], "another directory")
            state = servers.start(directory, state, part)
            servers.wait_ready(directory, state, _tell_nobody)
        return _cluster(directory, state)


def _recorded(directory: Path) -> ClusterState:
    state = read_state(directory)
    if state is None:
        raise NotRunning(f"no cluster runs in {directory}; bring one up first")
    return state
