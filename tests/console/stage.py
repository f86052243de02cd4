"""What the console is looked at with: oracles with REST on real services, and something for them to do."""

from __future__ import annotations

import signal
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from client import ClientSettings, PythiaError, TransactionManager
from tests.conftest import Services
from tests.integration.oracle_processes import OracleWithRest

WAIT_S = 60.0
LIFE_MS = 8_000
"""Short: the horizon is known after one life of an epoch."""
OPTIONS = ("--limit", f"transaction_life_ms={LIFE_MS}", "--limit", "conflict_map_entries_max=50000")


class Stage:
    """An installation of its own."""

    def __init__(self, services: Services) -> None:
        self.oracles: dict[str, OracleWithRest] = {}
        self.settings = ClientSettings(
            zookeeper=services.zookeeper,
            thrift=services.thrift,
            root=f"/pythia-console-{uuid.uuid4().hex[:8]}",
            heartbeat_interval_ms=1_000,
        )

    def start(self, name: str) -> OracleWithRest:
        """An oracle, which stands by for now."""
        self.oracles[name] = OracleWithRest(name, self.settings, *OPTIONS)
        return self.oracles[name]

    def page(self, name: str) -> str:
        """Where the console of an oracle is."""
        return f"{str(self.oracles[name].client.base_url).rstrip('/')}/console"

    def kill(self, name: str) -> None:
        """SIGKILL, and wait until the process is gone."""
        self.oracles[name].end(signal.SIGKILL)


@contextmanager
def stage(services: Services, *names: str) -> Iterator[Stage]:
    """The first of the oracles is primary."""
    made = Stage(services)
    try:
        for number, name in enumerate(names):
            oracle = made.start(name)
            if number == 0:
                oracle.until_primary()
        yield made
    finally:
        for oracle in made.oracles.values():
            oracle.end()


@contextmanager
def load(settings: ClientSettings, *, threads: int, pause_s: float) -> Iterator[TransactionManager]:
    """Small transactions meanwhile, a few of which conflict."""
    over = threading.Event()
    table = f"console_{uuid.uuid4().hex[:8]}"
    with TransactionManager.connect(settings) as manager:
        manager.create_table(table, ["d"])
        workers = [
            threading.Thread(target=_work, args=(manager, table, number, pause_s, over)) for number in range(threads)
        ]
        for worker in workers:
            worker.start()
        try:
            yield manager
        finally:
            over.set()
            for worker in workers:
                worker.join(WAIT_S)
            with suppress(PythiaError):
                manager.drop_table(table)


def _work(manager: TransactionManager, table: str, number: int, pause_s: float, over: threading.Event) -> None:
    rounds = 0
    while not over.wait(pause_s):
        rounds += 1
        shared = rounds % 11 == 0
        with suppress(PythiaError), manager.transaction() as transaction:
            transaction.put(table, b"shared" if shared else b"%d-%d" % (number, rounds), {b"d:value": b"1"})
            if shared:
                over.wait(pause_s)
