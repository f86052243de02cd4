"""One round trip after the other to ``benchmarks.echo_server``, by a blocking socket.

``python -m benchmarks.echo_load HOST:PORT`` takes the same lines and gives the same answers as ``benchmarks.our_load``;
of a line only the seconds count.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Callable

from benchmarks.load_loops import Tally

MESSAGE = bytes(32)
"""As long as the request of a begin, about."""
TIMEOUT_SECONDS = 30.0


def round_trips(connection: socket.socket, tally: Tally) -> None:
    """Until the window ends. Raises ``ConnectionError`` where the server is gone."""
    now = time.perf_counter
    while (began := now()) < tally.ends_at:
        connection.sendall(MESSAGE)
        left = len(MESSAGE)
        while left:
            data = connection.recv(left)
            if not data:
                raise ConnectionError("the echo server has closed the connection")
            left -= len(data)
        ended = now()
        tally.add(began, ended, ended, 1, 1)


def main(address: str, say: Callable[[str], None]) -> None:
    """Serve windows until standard input ends."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), TIMEOUT_SECONDS) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for line in sys.stdin:
            seconds = float(line.split()[2])
            cpu_seconds, tally = time.process_time(), Tally(time.perf_counter() + seconds)
            round_trips(connection, tally)
            say(json.dumps(tally.to_fields(seconds, time.process_time() - cpu_seconds)))


if __name__ == "__main__":
    main(sys.argv[1], lambda line: print(line, flush=True))
