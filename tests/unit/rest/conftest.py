"""A real REST server on a real socket, over an installation in this process: twins, and a real oracle.

``served``: one for the tests of a module, since each costs as long as an oracle takes to start; tests take rows of
their own. ``serve``: servers with limits and whereabouts of a test's own.
"""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx
import pytest
import uvicorn
import uvloop

from access.tls import ServerTls
from client import TransactionManager
from configuration.rest_limits import RestLimits
from drills.waiting import wait_until
from lease.memory import MemoryCoordinator
from rest.app import create_app
from rest.callers import Callers
from rest.roles import Require, open_to_all
from rest.server import make_server, serve
from rest.services import Installation as RestInstallation
from rest.whereabouts import AlwaysHere, Whereabouts
from tests.unit.client.conftest import SETTINGS, Installation, InstallationDirectory
from tso.rest_process import address_of, listen

WAIT_S = 20.0


def unconnected() -> RestInstallation:
    """An installation for what looks at an application alone."""
    raise AssertionError("nothing is to be asked")


class RunningRest:
    """A REST server, on an event loop in a thread of the test's own process."""

    def __init__(
        self,
        installation: Installation,
        limits: RestLimits,
        whereabouts: Whereabouts,
        oracle: str,
        callers: Callers | None = None,
        tls: ServerTls | None = None,
        *,
        elected: bool = True,
        require: Require = open_to_all,
    ) -> None:
        coordinator = self.coordinator = MemoryCoordinator(installation.tree) if elected else None
        settings = dataclasses.replace(SETTINGS, transaction_bytes_max=limits.transaction_bytes_max)
        self.listening = listen("127.0.0.1", 0)
        self.address = address_of(self.listening)
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://{self.address}"
        self.app = create_app(
            lambda: RestInstallation(
                settings,
                installation.store,
                InstallationDirectory(installation),
                whereabouts,
                oracle,
                lambda: None,
                scheme,
                coordinator,
            ),
            limits,
            require=require if callers is None else callers.require,
        )
        self.server: uvicorn.Server = make_server(self.app, limits, callers=callers, tls=tls)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        # ``listen`` accepts from the first moment on, but what a test reads of ``app.state`` is there only after this.
        wait_until(lambda: self.server.started, "a REST server to start", WAIT_S)
        self.client = httpx.Client(base_url=self.url, timeout=WAIT_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as the process does
            runner.run(serve(self.server, self.listening))

    @property
    def manager(self) -> TransactionManager:
        """By which it does its work."""
        manager: TransactionManager = self.app.state.services.manager
        return manager

    def stop(self) -> None:
        self.client.close()
        self.server.should_exit = True
        self._thread.join(WAIT_S)
        self.listening.close()
        assert not self._thread.is_alive()


@dataclass
class Served:
    """A running server, what it runs on, and a client of the library beside it."""

    rest: RunningRest
    installation: Installation
    manager: TransactionManager

    @property
    def client(self) -> httpx.Client:
        return self.rest.client


Serve = Callable[..., RunningRest]


def furnished() -> Installation:
    """A primary, and the tables ``accounts`` and ``audit`` with the family d."""
    installation = Installation()
    installation.serve()
    manager = installation.manager()
    manager.create_table("accounts", ["d"])
    manager.create_table("audit", ["d"], conflict_level="row")
    return installation


@pytest.fixture(scope="module")
def shared_installation() -> Iterator[Installation]:
    """For all tests of a module."""
    installation = furnished()
    yield installation
    installation.close()


@pytest.fixture
def own_installation() -> Iterator[Installation]:
    """For a test that does something to its oracle."""
    installation = furnished()
    yield installation
    installation.close()


@pytest.fixture
def serve_rest(shared_installation: Installation) -> Iterator[Serve]:
    started: list[RunningRest] = []

    def start(
        whereabouts: Whereabouts | None = None,
        callers: Callers | None = None,
        tls: ServerTls | None = None,
        **limits: int,
    ) -> RunningRest:
        address = shared_installation.find_primary() or ""
        rest = RunningRest(
            shared_installation, RestLimits(**limits), whereabouts or AlwaysHere(), address, callers, tls
        )
        started.append(rest)
        return rest

    yield start
    for rest in started:
        rest.stop()


@pytest.fixture(scope="module")
def served(shared_installation: Installation) -> Iterator[Served]:
    address = shared_installation.find_primary() or ""
    rest = RunningRest(shared_installation, RestLimits(), AlwaysHere(), address)
    yield Served(rest, shared_installation, shared_installation.manager())
    rest.stop()
