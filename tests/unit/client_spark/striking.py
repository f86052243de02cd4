"""Faults at any one call of a process to its store or its oracle: the call fails, or the process dies of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from client import NoPrimary, TransactionManager
from client.errors import ReplyLost
from store import CellStore, StoreUnavailable, Unknown
from tests.unit.client.conftest import SETTINGS, Installation, InstallationDirectory


class Died(BaseException):
    """The process is gone: nothing that it would have done happens any more."""


@dataclass
class Fault:
    """Strikes at one call to the store or the oracle, before or after it takes effect.

    ``kills``: it ends the process, otherwise the call only fails. ``at`` 0: never, it counts.
    """

    at: int = 0
    kills: bool = False
    after: bool = False
    calls: int = 0
    dead: bool = False

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if self.dead:
                raise Died
            self.calls += 1
            struck = self.calls == self.at
            if struck and not self.after:
                return self.strike(name)
            result = function(*arguments, **named)
            return self.strike(name) if struck else result

        return call

    def strike(self, name: str) -> Any:
        if self.kills:
            self.dead = True
            raise Died
        if name == "compare_and_set":
            return Unknown("says the test")
        if name == "oracle.commit" and self.after:
            raise ReplyLost("says the test")
        if name.startswith("oracle"):
            raise NoPrimary(1, "says the test")
        raise StoreUnavailable("says the test")


def struck_manager(installation: Installation, fault: Fault) -> TransactionManager:
    """That of another process, in which a fault lies in wait. Whoever makes it closes it."""
    store = cast(CellStore, StruckStore(installation.store, fault))
    manager = TransactionManager(SETTINGS, store, InstallationDirectory(installation))
    for name in ("begin", "commit", "abort"):
        setattr(manager.oracle, name, fault.around(f"oracle.{name}", getattr(manager.oracle, name)))
    return manager


class StruckStore:
    """A store whose every call passes a fault."""

    def __init__(self, store: CellStore, fault: Fault) -> None:
        self._store = store
        self._fault = fault

    def __getattr__(self, name: str) -> Any:
        return self._fault.around(name, getattr(self._store, name))
