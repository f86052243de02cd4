"""An installation to break: services, oracle processes behind proxies, and the names of what lives on them.

Invariant: whatever ends the ``with`` block ends every process that was started in it; the guard sees to the same should
the drill itself be killed.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import devcluster
from client import ClientSettings, InvalidRequest
from devcluster.guard import Guard
from drills.clocks import SteppedClock
from drills.oracles import OracleSettings, Seat
from drills.proxy import LOOPBACK, Mode, Proxies, Proxy
from drills.services import GivenServices, OwnServices, own_services
from drills.site import Site
from store import StoreError
from store.hbase import HBaseCellStore
from store.hbase.addresses import parse_addresses

PROCESSES_MIN, PROCESSES_MAX = 2, 9
CLIENT_PROCESSES: Final = 2
FIRST_PRIMARY_SECONDS_MAX: Final = 60.0
DEADLINE_MS: Final = 120_000
"""Of the drill's clients: no call of theirs ends for want of patience while a service is being restarted."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How an installation is to be: everything but the faults. ``zookeeper``, ``thrift``: given services.

    ``limits``: of the oracles, as ``NAME=VALUE``; those that are not named are as by default.
    """

    directory: Path
    processes: int = 3
    lease_ms: int = 2_000
    zookeeper: str | None = None
    thrift: str | None = None
    limits: tuple[str, ...] = ()

    @property
    def logs(self) -> Path:
        """Where the processes' logs go."""
        return self.directory / "logs"


@dataclass(slots=True)
class Installation(Site[Seat]):
    """Everything that a fault may lay hands on."""

    services: GivenServices | OwnServices
    seats: tuple[Seat, ...]
    zookeeper_for_clients: tuple[Proxy, ...]
    """Through which the processes of the load reach ZooKeeper, one each."""
    settings: ClientSettings
    """Of a client that nothing is ever cut off from."""
    lease_ms: int
    guard: Guard
    logs: Path

    def client_settings(self, process: int) -> ClientSettings:
        """Of the clients in that process of the load."""
        return replace(self.settings, zookeeper=self.zookeeper_for_clients[process].address)


@contextmanager
def installed(plan: Plan, guard: Guard, progress: devcluster.Progress) -> Iterator[Installation]:
    """Bring an installation up, with a primary, and take it down at the end.

    Raises ``DevClusterError``, ``DrillError``, ``StoreError``; ``InvalidRequest`` for services that no proxy can stand
    before.
    """
    for name, address in (("zookeeper", plan.zookeeper), ("thrift", plan.thrift)):
        if address is not None and "," in address:
            raise InvalidRequest(f"a drill cuts processes off from one address of {name}, not of several: {address!r}")
    if plan.thrift is not None and parse_addresses(plan.thrift)[0].kerberos:
        raise InvalidRequest(
            f"a drill's proxies are dialled as {LOOPBACK}, which no gateway's principal names: give one that asks for "
            f"no Kerberos, not {plan.thrift!r}"
        )
    plan.logs.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        services = stack.enter_context(_services(plan, guard, progress))
        proxies = stack.enter_context(Proxies())
        root = f"/drill-{secrets.token_hex(4)}"
        if not services.is_own:
            stack.callback(_drop_tables, services.thrift, root)
        for_clients = [
            proxies.open(f"ZooKeeper for clients, {number}", services.zookeeper)
            for number in range(1, CLIENT_PROCESSES + 1)
        ]
        settings = OracleSettings(services.zookeeper, services.thrift, root, plan.lease_ms, plan.logs, plan.limits)
        names = [f"tso-{number}" for number in range(1, plan.processes + 1)]
        clocks = {name: SteppedClock(plan.directory / "clocks" / name) for name in names}
        seats = tuple(Seat(name, settings, proxies, guard, clocks[name]) for name in names)
        client_settings = ClientSettings(services.zookeeper, services.thrift, root, deadline_ms=DEADLINE_MS)
        installation = Installation(
            services, seats, tuple(for_clients), client_settings, plan.lease_ms, guard, plan.logs
        )
        progress(devcluster.Step(f"starting {plan.processes} oracle processes"))
        for seat in seats:
            stack.callback(seat.kill)
            seat.start()
        for seat in seats:
            seat.await_ready()
        installation.await_primary(0, FIRST_PRIMARY_SECONDS_MAX)
        # Before the processes are killed: what a fault left cut or slow would only hold that up.
        stack.callback(_pass_everything, installation)
        yield installation


@contextmanager
def _services(plan: Plan, guard: Guard, progress: devcluster.Progress) -> Iterator[GivenServices | OwnServices]:
    if plan.zookeeper and plan.thrift:
        yield GivenServices(plan.zookeeper, plan.thrift)
        return
    with own_services(plan.directory, plan.logs, guard, progress) as services:
        yield services


def _pass_everything(installation: Installation) -> None:
    for proxy in installation.zookeeper_for_clients:
        proxy.set_mode(Mode.PASS)
    for seat in installation.seats:
        seat.pass_everything()


def tables_of(root: str) -> str:
    """What the names of an installation's own tables begin with; the drill's tables are named so as well."""
    return root.strip("/").replace("/", "_")


def _drop_tables(thrift: str, root: str) -> None:
    """Leave nothing on services that others use. The znodes stay: they are a few bytes below a root of their own."""
    with contextlib.closing(HBaseCellStore(thrift)) as store, contextlib.suppress(StoreError):
        for table in store.table_names():
            if table.startswith(tables_of(root)):
                store.drop_table(table)
