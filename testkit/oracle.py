"""One oracle in a thread of this process: the real one, on a real socket, over whatever store it is given."""

from __future__ import annotations

import asyncio
import threading
from typing import Final

from lease.coordinator import Coordinator
from store import CellStore
from store.bulk import BlockingPutter
from tso.process import OracleProcess
from tso.settings import ServeSettings

START_SECONDS_MAX: Final = 120
"""The first oracle after an installation compiles its kernels."""
STOP_SECONDS_MAX: Final = 60


class OracleThread:
    """A standby from the moment that it is made. ``coordinator``: where its lease is; ``None``: it is alone.

    Raises what kept it from starting, and ``TimeoutError`` where that took longer than ``START_SECONDS_MAX``.
    """

    def __init__(self, settings: ServeSettings, coordinator: Coordinator | None, store: CellStore) -> None:
        self._settings = settings
        self._coordinator = coordinator
        self._store = store
        self._standby = threading.Event()
        self._primary = threading.Event()
        self._failure: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=f"oracle-{settings.name}", daemon=True)
        self._thread.start()
        self._wait_for(self._standby)

    @property
    def address(self) -> str:
        """``host:port``, where it listens."""
        return self._process.server.address

    def await_primary(self) -> None:
        """Wait until it serves. Raises what ended it before, and ``TimeoutError``."""
        self._wait_for(self._primary)

    def stop(self) -> None:
        """End it in the orderly way: its lease goes to another at once. Harmless where it has ended."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._process.stop)
        self._thread.join(STOP_SECONDS_MAX)
        if self._thread.is_alive():
            raise TimeoutError(f"the oracle {self._settings.name} did not end within {STOP_SECONDS_MAX} s")

    def _wait_for(self, event: threading.Event) -> None:
        if not event.wait(START_SECONDS_MAX):
            raise TimeoutError(f"the oracle {self._settings.name} did not come so far within {START_SECONDS_MAX} s")
        if self._failure is not None:  # then both are set, whatever came first
            raise RuntimeError(f"the oracle {self._settings.name} has ended: {self._failure}") from self._failure

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._process = OracleProcess(
                self._settings, self._coordinator, self._store, BlockingPutter(self._store), announce=self._announced
            )
            self._loop.run_until_complete(self._process.run())
            self._failure = RuntimeError("it was told to, or gave up")
        except BaseException as error:  # told to whoever waits: a thread has nobody else to raise it to
            self._failure = error
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()
            self._standby.set()
            self._primary.set()

    def _announced(self, line: str) -> None:
        self._standby.set()
        if line.startswith("primary"):
            self._primary.set()
