from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from benchmarks.cpu_time import busy_share, cpu_seconds, seconds_in
from benchmarks.peer.listening import is_loopback, listening_addresses, listening_in

HEADING = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
LINE = "   0: {address}:5DCA {peer}:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1 0\n"


def lines(*rows: tuple[str, str, str]) -> str:
    return HEADING + "".join(
        LINE.format(address=address, peer="0" * len(address), state=state, inode=inode)
        for address, state, inode in rows
    )


def test_listening_sockets_are_told_from_connections() -> None:
    table = lines(("0100007F", "0A", "1"), ("00000000", "0A", "2"), ("0100007F", "01", "3"))
    assert list(listening_in(table)) == [("1", "127.0.0.1"), ("2", "0.0.0.0")]
    wide = lines(("00000000000000000000000001000000", "0A", "4"), ("0000000000000000FFFF00000100007F", "0A", "5"))
    assert list(listening_in(wide)) == [("4", "::1"), ("5", "127.0.0.1")]


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1"])
def test_loopback(address: str) -> None:
    assert is_loopback(address)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.1"])
def test_not_loopback(address: str) -> None:
    assert not is_loopback(address)


def test_only_the_sockets_of_the_process_count() -> None:
    before = listening_addresses(os.getpid())
    with socket.create_server(("127.0.0.1", 0)):
        assert listening_addresses(os.getpid()) == (*before, "127.0.0.1")
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
            assert listening_addresses(stranger.pid) == ()
            stranger.communicate()


def test_cpu_time_is_read_past_a_name_with_brackets_and_blanks() -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    stat = f"7 (a) b (c)) S 1 7 7 0 -1 0 5 0 0 0 {3 * ticks} {ticks} 100 200 20 0"
    assert seconds_in(stat) == 4.0
    assert cpu_seconds(os.getpid()) > 0


def test_the_rest_of_all_cores_is_idling_and_waiting_for_disks() -> None:
    before = "cpu  100 0 50 800 50 0 0 0 0 0"
    assert busy_share(before, "cpu  130 0 60 840 70 0 0 0 0 0") == 0.4
    assert busy_share(before, before) == 1.0, "nothing has passed: nothing says that it rests"
