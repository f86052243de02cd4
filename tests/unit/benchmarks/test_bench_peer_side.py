"""Omid's processes played by small programs, to see what becomes of them when something goes wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.peer import side as peer_side
from benchmarks.peer.configuration import DEFAULT, Program
from benchmarks.peer.side import PeerSide
from benchmarks.sides import SideError
from devcluster.guard import Guard
from drills.errors import ChildFailed
from tests.unit.benchmarks.test_bench_peer_configuration import ANSWER

JAVA = f"""#!{sys.executable}
import pathlib, re, socket, sys
settings = pathlib.Path(sys.argv[sys.argv.index("-cp") + 1].split(":")[0])
print("the log of", sys.argv[-1], file=sys.stderr, flush=True)
if "pythia.peer.Driver" in sys.argv:
    for line in sys.stdin:
        DRIVER
else:
    port = int(re.search("port: ([0-9]+)", (settings / "omid-server-configuration.yml").read_text())[1])
    SERVER
"""
SERVES = """server = socket.create_server(("127.0.0.1", port))
    while True:
        server.accept()[0].close()"""
ANSWERS = f"print({ANSWER!r}, flush=True)"

Make = Callable[[str, str], PeerSide]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    sides: list[PeerSide] = []
    with Guard() as guard:

        def new(server: str, driver: str) -> PeerSide:
            java = tmp_path / "java"
            java.write_text(JAVA.replace("DRIVER", driver).replace("SERVER", server), encoding="utf-8")
            java.chmod(0o755)
            sides.append(PeerSide(DEFAULT, Program(java, ()), tmp_path / "peer", guard))
            return sides[-1]

        yield new
        for side in sides:
            side.stop()


def children() -> set[int]:
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


def test_one_pair_of_processes_serves_all_windows_and_ends(make: Make) -> None:
    side = make(SERVES, ANSWERS)
    before = children()
    side.start()
    assert len(children() - before) == 2
    assert [side.window(64, 2, 1.0, 1).transactions for _ in range(3)] == [100, 100, 100]
    side.stop()
    side.stop()
    assert children() == before
    assert side.configuration["commit_table"] == "none"


def test_a_server_that_dies_at_its_start_shows_its_log(make: Make) -> None:
    side = make("sys.exit(3)", ANSWERS)
    with pytest.raises(ChildFailed, match=r"exit code 3 but does not serve on port(.|\n)*the log of org.apache.omid"):
        side.start()


def test_a_server_that_others_could_reach_is_refused(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_side, "listening_addresses", lambda pid: ("127.0.0.1", "0.0.0.0"))
    with pytest.raises(SideError, match=r"listens on 127\.0\.0\.1, 0\.0\.0\.0"):
        make(SERVES, ANSWERS).start()


def test_a_stranger_on_the_port_is_not_measured(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_side, "listening_addresses", lambda pid: ())
    with pytest.raises(SideError, match="another process took port"):
        make(SERVES, ANSWERS).start()


def test_a_driver_that_dies_or_babbles_ends_the_measurement_with_both_logs(make: Make) -> None:
    side = make(SERVES, 'sys.exit("no more") if "64" in line else print("babble", flush=True)')
    side.start()
    with pytest.raises(SideError, match=r"something else than a window(.|\n)*server\.log(.|\n)*driver\.log"):
        side.window(1, 2, 1.0, 1)
    with pytest.raises(SideError, match=r"did not answer(.|\n)*no more"):
        side.window(64, 2, 1.0, 1)


def test_a_driver_that_hangs_is_given_up(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_side, "DRAIN_SECONDS_MAX", 0.2)
    side = make(SERVES, "pass")
    side.start()
    with pytest.raises(SideError, match="did not answer"):
        side.window(1, 2, 0.0, 1)
