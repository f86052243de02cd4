"""More gateways to the HBase of the tests, of other transports."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from devcluster.configuration import Part, hbase_settings, site_file, start_command
from devcluster.guard import Guard
from devcluster.ports import claim
from devcluster.readiness import listens
from devcluster.settings import LOOPBACK
from store import StoreError
from store.hbase import HBaseCellStore
from tests.hbase_classes import java_with_hbase

HEAP_MEBIBYTES = 256
READY_SECONDS_MAX = 60.0
END_SECONDS_MAX = 30.0


class Transport(NamedTuple):
    """What a gateway is started with, and what stands before its address then."""

    before: str
    options: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    part: Part = "gateway"


FRAMED: Final = Transport("framed://", options=("--framed",))
HTTP: Final = Transport("http://", settings=(("hbase.regionserver.thrift.http", "true"),))
THRIFT2: Final = Transport("", part="gateway2")


@contextlib.contextmanager
def gateway_of(transport: Transport, zookeeper: str, directory: Path) -> Iterator[str]:
    """Its address, as it is told to Pythia."""
    java, environment = java_with_hbase(zookeeper, directory)
    settings = hbase_settings(directory, int(zookeeper.rpartition(":")[2])) | dict(transport.settings)
    (directory / "conf" / "hbase-site.xml").write_bytes(site_file(settings))
    port = claim(0, "Thrift", "--thrift-port")
    command = [*start_command(transport.part, java, directory, HEAP_MEBIBYTES, port), *transport.options]
    log = directory / "logs" / "gateway.out"
    with Guard() as guard, log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
        guard.watch_process(process.pid)
        try:
            address = f"{transport.before}{LOOPBACK}:{port}"
            names_tables = transport.part == "gateway"
            answers = partial(_names_tables, address) if names_tables else partial(listens, port)
            _wait_until(answers, process, log)
            yield address
        finally:
            process.kill()
            process.wait(END_SECONDS_MAX)


def _wait_until(answers: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    until_s = time.monotonic() + READY_SECONDS_MAX
    while not answers():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < until_s, log.read_text()
        time.sleep(0.2)


def _names_tables(address: str) -> bool:
    with contextlib.closing(HBaseCellStore(address)) as store:
        try:
            store.table_names()
        except StoreError:
            return False
    return True
