"""A realm of Kerberos for tests: a KDC on loopback, a keytab of all its principals, and the ``krb5.conf`` for both."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from unittest.mock import patch

from devcluster.guard import Guard
from devcluster.java import find_java
from devcluster.ports import claim
from devcluster.settings import LOOPBACK
from drills.waiting import wait_until
from tests.listed_jars import fetched

NAME: Final = "PYTHIA.TEST"
READY_SECONDS_MAX = 60.0
END_SECONDS_MAX = 30.0
HEAP_MEBIBYTES = 64
_TICKET_LIFE_MS = 86_400_000
_NAMES_AS_THEY_ARE = "    dns_canonicalize_hostname = false\n    rdns = false"
_READY = "Standalone MiniKdc Running"


@dataclass(frozen=True)
class Realm:
    """``configuration`` is its krb5.conf; ``keytab`` has the keys of all principals."""

    configuration: Path
    keytab: Path


@contextlib.contextmanager
def realm(directory: Path, principals: Sequence[str]) -> Iterator[Realm]:
    """Running, and the one that this process and those that it starts believe in meanwhile."""
    java = find_java()
    jars = fetched(Path(__file__).parent, java)
    settings, keytab, log = directory / "kdc.properties", directory / "keytab", directory / "kdc.out"
    organisation, _, domain = NAME.partition(".")
    settings.write_text(
        f"org.name={organisation}\norg.domain={domain}\ninstance=DefaultKrbServer\ntransport=TCP\ndebug=false\n"
        f"kdc.bind.address={LOOPBACK}\nkdc.port={claim(0, 'the KDC', '--kdc-port')}\n"
        f"max.ticket.lifetime={_TICKET_LIFE_MS}\nmax.renewable.lifetime={_TICKET_LIFE_MS}\n"
    )
    command = [
        str(java),
        f"-Xmx{HEAP_MEBIBYTES}m",
        "-Djava.net.preferIPv4Stack=true",
        "-XX:-UsePerfData",
        "-cp",
        ":".join(map(str, jars)),
        "org.apache.hadoop.minikdc.MiniKdc",
        str(directory),
        str(settings),
        str(keytab),
        *principals,
    ]
    made = Realm(directory / "krb5.conf", keytab)
    with Guard() as guard, log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        guard.watch_process(process.pid)
        try:

            def is_ready() -> bool:
                assert process.poll() is None, log.read_text()
                return _READY in log.read_text()

            wait_until(is_ready, "the KDC", READY_SECONDS_MAX, log.read_text)
            # Whatever this machine calls itself: the principals say localhost.
            written = made.configuration.read_text()
            made.configuration.write_text(written.replace("[libdefaults]", f"[libdefaults]\n{_NAMES_AS_THEY_ARE}"))
            with patch.dict(os.environ, {"KRB5_CONFIG": str(made.configuration)}):
                yield made
        finally:
            process.kill()
            process.wait(END_SECONDS_MAX)
