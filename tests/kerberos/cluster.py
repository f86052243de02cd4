"""An HBase that asks everybody for Kerberos, with gateways that seal frames, leave them as they are, or speak HTTP;
and a ZooKeeper beside its own that asks for Kerberos, too.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from access.services import Kerberos
from devcluster.configuration import Part, hbase_settings, site_file, start_command
from devcluster.guard import Guard
from devcluster.ports import claim
from devcluster.readiness import listens
from drills.waiting import wait_until
from store import StoreError
from store.hbase import HBaseCellStore, PoolSettings
from tests.hbase_classes import java_with_hbase
from tests.kerberos.realm import NAME, Realm, realm
from tests.kerberos.zookeeper import SERVICE as ZOOKEEPER_SERVICE
from tests.kerberos.zookeeper import kerberized_zookeeper

HEAPS_MEBIBYTES: Final[dict[Part, int]] = {"hbase": 512, "gateway": 192, "gateway2": 128}
READY_SECONDS_MAX = 120.0
END_SECONDS_MAX = 30.0
SERVICE, CLIENT, GUEST = "gate", "etl", "guest"
"""The gateways' first part, who may do everything, and who may do nothing."""
HTTP_SERVICE = "HTTP"
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
    """The ZooKeeper for oracles, and the addresses of HBase's gateways: frames as they are, encrypted ones, and HTTP;
    and of a Thrift 2 gateway.

    ``kerberos``: who may do everything.
    """

    zookeeper: str
    plain: str
    sealed: str
    by_http: str
    thrift2: str
    kerberos: Kerberos
    realm: Realm


def _settings(keytab: Path, protection: str, by_http: bool) -> dict[str, str]:
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
        **({} if by_http else {"hbase.thrift.security.qop": protection}),
        "hbase.regionserver.thrift.http": str(by_http).lower(),
        "hbase.thrift.spnego.principal": f"{HTTP_SERVICE}/{HOST}@{NAME}",
        "hbase.thrift.spnego.keytab.file": str(keytab),
        f"hadoop.proxyuser.{SERVICE}.hosts": "*",
        f"hadoop.proxyuser.{SERVICE}.groups": "*",
        "hbase.security.authorization": "true",
        "hbase.superuser": f"hbase,{CLIENT}",
        **{f"hbase.coprocessor.{of}.classes": _ACCESS_CONTROLLER for of in ("master", "region", "regionserver")},
    }


@contextlib.contextmanager
def kerberized_hbase(directory: Path) -> Iterator[Kerberized]:
    """Running, with its realm."""
    principals = [
        f"hbase/{HOST}",
        f"{SERVICE}/{HOST}",
        f"{ZOOKEEPER_SERVICE}/{HOST}",
        f"{HTTP_SERVICE}/{HOST}",
        CLIENT,
        GUEST,
    ]
    with realm(directory, principals) as believed, Guard() as guard, ExitStack() as ends:
        zookeeper = claim(0, "ZooKeeper", "--zookeeper-port")

        def start(part: Part, protection: str, *, by_http: bool = False) -> int:
            place = directory / f"{part}-{protection}{'-http' if by_http else ''}"
            place.mkdir()
            port = claim(0, "Thrift", "--thrift-port", avoid=(zookeeper,))
            java, environment = java_with_hbase(f"{HOST}:{zookeeper}", place)
            site = site_file(hbase_settings(place, zookeeper) | _settings(believed.keytab, protection, by_http))
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
        by_http = start("gateway", "auth", by_http=True)
        thrift2 = start("gateway2", "auth")
        made = Kerberized(
            ends.enter_context(kerberized_zookeeper(directory / "zookeeper", HOST, believed)),
            f"kerberos://{HOST}:{plain}",
            f"kerberos://{HOST}:{sealed}",
            f"kerberos+http://{HOST}:{by_http}",
            f"kerberos://{HOST}:{thrift2}",
            Kerberos(SERVICE, f"{CLIENT}@{NAME}", str(believed.keytab)),
            believed,
        )
        for address in (made.plain, made.sealed, made.by_http):
            _wait_until_it_answers(address, of_gateway(made.kerberos, address), directory)
        wait_until(lambda: listens(thrift2), f"{made.thrift2}, with logs in {directory}", READY_SECONDS_MAX)
        yield made


def of_gateway(kerberos: Kerberos, address: str) -> Kerberos:
    """The same, for a gateway whose principal is the usual one where it is asked by HTTP."""
    return replace(kerberos, service="") if "http" in address else kerberos


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
