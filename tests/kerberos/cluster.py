"""An HBase that asks everybody for Kerberos, with a gateway that seals frames and one that leaves them as they are; and
a ZooKeeper beside its own that does, too.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from access.services import Kerberos
from devcluster.configuration import Part, hbase_settings, site_file, start_command
from devcluster.ports import claim
from drills.guard import Guard
from drills.waiting import wait_until
from store import StoreError
from store.hbase import HBaseCellStore, PoolSettings
from tests.hbase_classes import java_with_hbase
from tests.kerberos.realm import NAME, Realm, realm
from tests.kerberos.zookeeper import SERVICE as ZOOKEEPER_SERVICE
from tests.kerberos.zookeeper import kerberized_zookeeper

HEAPS_MEBIBYTES: Final[dict[Part, int]] = {"hbase": 512, "gateway": 192}
READY_SECONDS_MAX = 120.0
END_SECONDS_MAX = 30.0
SERVICE, CLIENT, GUEST = "gate", "etl", "guest"
"""The gateways' first part, who may do everything, and who may do nothing."""
HOST: Final = "localhost"
"""As the principals of the servers name it."""
_JAVA_OPTIONS: Final = (
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
)
"""What Hadoop reaches into for the realm's name."""

_ACCESS_CONTROLLER: Final = "org.apache.hadoop.hbase.security.access.AccessController"


@dataclass(frozen=True)
class Kerberized:
    """The ZooKeeper for oracles, and the addresses of HBase's gateways: frames as they are, and encrypted ones.

    ``kerberos``: who may do everything.
    """

    zookeeper: str
    plain: str
    sealed: str
    kerberos: Kerberos
    realm: Realm


def _settings(keytab: Path, protection: str) -> dict[str, str]:
    servers, gateway = f"hbase/{HOST}@{NAME}", f"{SERVICE}/{HOST}@{NAME}"
    return {
        "hadoop.security.authentication": "kerberos",
        "hbase.security.authentication": "kerberos",
        "hbase.master.kerberos.principal": servers,
        "hbase.regionserver.kerberos.principal": servers,
        "hbase.master.keytab.file": str(keytab),
        "hbase.regionserver.keytab.file": str(keytab),
        "hbase.thrift.kerberos.principal": gateway,
        "hbase.thrift.keytab.file": str(keytab),
        "hbase.thrift.security.qop": protection,
        f"hadoop.proxyuser.{SERVICE}.hosts": "*",
        f"hadoop.proxyuser.{SERVICE}.groups": "*",
        "hbase.security.authorization": "true",
        "hbase.superuser": f"hbase,{CLIENT}",
        **{f"hbase.coprocessor.{of}.classes": _ACCESS_CONTROLLER for of in ("master", "region", "regionserver")},
    }


@contextlib.contextmanager
def kerberized_hbase(directory: Path) -> Iterator[Kerberized]:
    """Running, with its realm."""
    principals = [f"hbase/{HOST}", f"{SERVICE}/{HOST}", f"{ZOOKEEPER_SERVICE}/{HOST}", CLIENT, GUEST]
    with realm(directory, principals) as believed, Guard() as guard, ExitStack() as ends:
        zookeeper = claim(0, "ZooKeeper", "--zookeeper-port")

        def start(part: Part, protection: str) -> int:
            place = directory / f"{part}-{protection}"
            place.mkdir()
            port = claim(0, "Thrift", "--thrift-port", avoid=zookeeper)
            java, environment = java_with_hbase(f"{HOST}:{zookeeper}", place)
            site = site_file(hbase_settings(place, zookeeper) | _settings(believed.keytab, protection))
            for name in ("hbase-site.xml", "core-site.xml"):  # Hadoop's own classes read the latter alone
                (place / "conf" / name).write_bytes(site)
            java_command, *rest = start_command(part, java, place, HEAPS_MEBIBYTES[part], port)
            options = [*_JAVA_OPTIONS, f"-Djava.security.krb5.conf={believed.configuration}"]
            output = ends.enter_context((place / "logs" / f"{part}.out").open("wb"))
            process = subprocess.Popen(
                [java_command, *options, *rest],
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            guard.watch_process(process.pid)
            ends.callback(process.wait, END_SECONDS_MAX)
            ends.callback(process.kill)
            return port

        start("hbase", "auth")
        plain, sealed = start("gateway", "auth"), start("gateway", "auth-conf")
        made = Kerberized(
            ends.enter_context(kerberized_zookeeper(directory / "zookeeper", HOST, believed)),
            f"kerberos://{HOST}:{plain}",
            f"kerberos://{HOST}:{sealed}",
            Kerberos(SERVICE, f"{CLIENT}@{NAME}", str(believed.keytab)),
            believed,
        )
        for address in (made.plain, made.sealed):
            _wait_until_it_answers(address, made.kerberos, directory)
        yield made


def _wait_until_it_answers(address: str, kerberos: Kerberos, directory: Path) -> None:
    settings = PoolSettings(unavailable_after_ms=1, kerberos=kerberos)
    with closing(HBaseCellStore(address, settings)) as store:
        wait_until(lambda: _answers(store), f"{address}, with logs in {directory}", READY_SECONDS_MAX)


def _answers(store: HBaseCellStore) -> bool:
    try:
        store.table_names()
    except StoreError:
        return False
    return True
