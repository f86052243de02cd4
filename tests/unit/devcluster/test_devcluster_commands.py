from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from devcluster import cluster, servers
from devcluster.artifacts import Artifact, parse_list
from devcluster.commands import default_directory, dev
from devcluster.errors import DiskFull, JarListDamaged, PortTaken, StartFailed
from devcluster.settings import ClusterSettings

Program = Callable[[str, str], Path]

# Answers -version; as a server it does what the test asks for.
JAVA = """
if "-version" in sys.argv:
    print('openjdk version "17.0.9"', file=sys.stderr)
    sys.exit(0)
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(dev, arguments)


@pytest.fixture
def no_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ensure_jars", lambda java, limit, tell: (Path("/none.jar"),))


def test_no_java_is_one_line_and_a_code(programs: Program, tmp_path: Path) -> None:
    del programs
    result = run("up", "--directory", str(tmp_path / "cluster"))
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: no Java found: install Java 17")
    assert len(result.stderr.splitlines()) == 1


def test_a_wrong_java_is_one_line_and_a_code(programs: Program, tmp_path: Path) -> None:
    programs("java", """print('openjdk version "11"', file=sys.stderr)""")
    result = run("up", "--directory", str(tmp_path / "cluster"))
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)
    assert "Java 11 found" in result.stderr


def test_no_network_is_told_without_a_traceback(programs: Program, java: Path, tmp_path: Path) -> None:
    del java
    programs("mvn", "print('[ERROR] Temporary failure in name resolution'); sys.exit(1)")
    result = run("up", "--directory", str(tmp_path / "cluster"))
    assert result.exit_code == 1
    assert "check the network" in result.stderr
    assert "Traceback" not in result.output


def test_a_damaged_list_of_jars_is_told(java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del java

    def damaged() -> tuple[Artifact, ...]:
        return parse_list("rubbish")

    monkeypatch.setattr("devcluster.jars.committed_list", damaged)
    with pytest.raises(JarListDamaged):
        damaged()
    result = run("up", "--directory", str(tmp_path / "cluster"))
    assert "line 1 of jars.sha256" in result.stderr


@pytest.mark.usefixtures("no_jars")
def test_a_taken_port_is_told(java: Path, tmp_path: Path) -> None:
    del java
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = run("up", "--directory", str(tmp_path / "cluster"), "--thrift-port", str(port))
    assert result.exit_code == 1
    assert f"port {port} for Thrift is taken" in result.stderr


def test_files_that_are_not_a_clusters_are_neither_used_nor_wiped(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for arguments in (["up"], ["down", "--wipe"], ["up", "--fresh"]):
        result = run(*arguments, "--directory", str(tmp_path))
        assert result.exit_code == 1
        assert "holds files that are not a cluster's" in result.stderr
    assert (tmp_path / "data").is_dir()


def test_down_and_status_of_nothing(tmp_path: Path) -> None:
    result = run("down", "--directory", str(tmp_path / "none"))
    assert (result.exit_code, "was not running" in result.output) == (0, True)
    result = run("status", "--json", "--directory", str(tmp_path / "none"))
    assert result.exit_code == 3
    assert json.loads(result.stdout)["condition"] == "absent"


def test_status_of_a_damaged_state_file_is_an_error_and_down_clears_it(tmp_path: Path) -> None:
    (tmp_path / "cluster.lock").touch()
    (tmp_path / "cluster.json").write_text("{", encoding="utf-8")
    result = run("status", "--directory", str(tmp_path))
    assert (result.exit_code, "cannot be read" in result.stderr) == (1, True)
    assert run("down", "--directory", str(tmp_path)).exit_code == 0
    assert run("status", "--directory", str(tmp_path)).output.startswith("stopped: ")


def test_the_default_directory_follows_the_users_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_directory() == tmp_path / "pythia" / "cluster"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert default_directory() == Path("/home/somebody/.local/share/pythia/cluster")


@pytest.mark.usefixtures("no_jars")
def test_a_server_that_dies_shows_its_log_and_leaves_nothing(programs: Program, tmp_path: Path) -> None:
    programs("java", JAVA + "print('the reason it died'); sys.exit(1)")
    with pytest.raises(StartFailed, match="died while it was starting") as caught:
        cluster.up(ClusterSettings(tmp_path / "cluster"))
    assert "the reason it died" in str(caught.value)
    assert cluster.status(tmp_path / "cluster").condition == "stopped"


@pytest.mark.usefixtures("no_jars")
def test_a_master_that_gives_up_in_a_living_jvm_is_not_waited_for(programs: Program, tmp_path: Path) -> None:
    log = "[argument.partition('=')[2] for argument in sys.argv if argument.startswith('-Dpythia.log=')][0]"
    text = "'***** ABORTING master m: the reason *****\\n' + 'much else\\n' * 50"
    programs("java", JAVA + f"import time\npathlib.Path({log}).write_text({text})\ntime.sleep(600)")
    with pytest.raises(StartFailed, match=r"ABORTING master m: the reason"):
        cluster.up(ClusterSettings(tmp_path / "cluster"))


@pytest.mark.usefixtures("no_jars")
def test_a_server_that_finds_the_disk_full_says_so(programs: Program, tmp_path: Path) -> None:
    programs("java", JAVA + "print('java.io.IOException: No space left on device'); sys.exit(1)")
    with pytest.raises(DiskFull, match="make room"):
        cluster.up(ClusterSettings(tmp_path / "cluster"))


@pytest.mark.usefixtures("no_jars")
def test_a_port_lost_in_between_is_tried_again_with_another(
    programs: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs("java", JAVA + "print('java.net.BindException: Address already in use'); sys.exit(1)")
    started: list[int] = []
    original = servers.write_configuration

    def note(directory: Path, zookeeper_port: int) -> None:
        started.append(zookeeper_port)
        original(directory, zookeeper_port)

    monkeypatch.setattr(servers, "write_configuration", note)
    with pytest.raises(PortTaken, match=r"before .* could"):
        cluster.up(ClusterSettings(tmp_path / "cluster"))
    assert len(started) == cluster.START_ATTEMPTS_MAX


@pytest.mark.usefixtures("no_jars")
def test_too_little_room_is_told_ahead(java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del java
    monkeypatch.setattr(cluster, "DATA_FREE_MEBIBYTES", 2**40)
    with pytest.raises(DiskFull, match="MiB needed"):
        cluster.up(ClusterSettings(tmp_path / "cluster"))


@pytest.mark.usefixtures("no_jars")
def test_servers_that_never_serve_are_ended_at_the_limit(programs: Program, tmp_path: Path) -> None:
    programs("java", JAVA + "import time\ntime.sleep(600)")
    result = run("up", "--directory", str(tmp_path / "cluster"), "--ready-timeout", "1")
    assert result.exit_code == 1
    assert "waiting for ZooKeeper took longer than 1 s" in result.stderr
    assert cluster.status(tmp_path / "cluster").condition == "stopped"
