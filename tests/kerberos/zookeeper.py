"""A ZooKeeper that has no session with anybody whom Kerberos does not vouch for."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from devcluster.configuration import zookeeper_command, zookeeper_settings
from devcluster.guard import Guard
from devcluster.jars import ensure_jars
from devcluster.java import find_java
from devcluster.ports import claim
from devcluster.readiness import zookeeper_answers
from drills.waiting import wait_until
from tests.kerberos.realm import END_SECONDS_MAX, NAME, READY_SECONDS_MAX, Realm
from tests.listed_jars import FETCH_SECONDS_MAX

SERVICE = "zookeeper"
_ONLY_WITH_KERBEROS = (
    "authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n"
    "enforce.auth.enabled=true\nenforce.auth.schemes=sasl\n"
)
_LOGIN = """Server {{
  com.sun.security.auth.module.Krb5LoginModule required
  useKeyTab=true storeKey=true useTicketCache=false keyTab="{keytab}" principal="{principal}";
}};
"""


@contextlib.contextmanager
def kerberized_zookeeper(directory: Path, host: str, believed: Realm) -> Iterator[str]:
    """Running; its address, with ``kerberos://`` before it. The realm has ``SERVICE/host`` among its principals."""
    directory.mkdir()
    java, port = find_java(), claim(0, "ZooKeeper", "")
    configuration, login = directory / "zoo.cfg", directory / "login.conf"
    configuration.write_text(zookeeper_settings(directory / "data", port) + _ONLY_WITH_KERBEROS)
    login.write_text(_LOGIN.format(keytab=believed.keytab, principal=f"{SERVICE}/{host}@{NAME}"))
    jars = ensure_jars(java, FETCH_SECONDS_MAX, lambda step: None)
    java_command, *rest = zookeeper_command(str(java), [str(directory), *map(str, jars)], configuration)
    options = [f"-Djava.security.auth.login.config={login}", f"-Djava.security.krb5.conf={believed.configuration}"]
    log = directory / "out"
    with Guard() as guard, log.open("wb") as output:
        process = subprocess.Popen([java_command, *options, *rest], stdout=output, stderr=subprocess.STDOUT)
        guard.watch_process(process.pid)
        try:
            wait_until(lambda: zookeeper_answers(port), "ZooKeeper", READY_SECONDS_MAX, log.read_text)
            yield f"kerberos://{host}:{port}"
        finally:
            process.kill()
            process.wait(END_SECONDS_MAX)
