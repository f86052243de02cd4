"""What the routes share: the oracle's client, the transactions that are held here, and who is primary.

Made with the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request

from client import AsyncOracleClient, ClientMetrics, ClientSettings, TransactionManager
from client.connection.primary import Directory, SoloDirectory
from client.connection.tickets import QuestionTicket
from configuration.rest_limits import RestLimits
from lease import Coordinator
from rest.held_transactions import HeldTransactions
from rest.idempotency import IdempotentAnswers
from rest.metering import RestMetering
from rest.overview import Overview
from rest.problems import Problem
from rest.shared import Shared
from rest.whereabouts import Whereabouts
from store import CellStore
from wire import Message, MetricsReply, MetricsRequest, StatusReply, StatusRequest

Answer = TypeVar("Answer", bound=Message)

OWN_TIMEOUT_MS = 2_000
"""The oracle beside is on the same machine: a longer silence is an answer."""
OWN_FRESH_MS = 100
"""What it says of itself is believed for so long: it answers a few such questions at once, and anybody may ask."""


@dataclass(frozen=True, slots=True)
class Installation:
    """What a REST process runs on: ``oracle`` is the address of the one beside it; ``close`` gives back all of it.

    ``coordinator``: where lease, members and history are; ``None``: the oracle is alone.
    """

    settings: ClientSettings
    store: CellStore
    directory: Directory
    whereabouts: Whereabouts
    oracle: str
    close: Callable[[], None]
    scheme: str = "http"
    """By which REST is spoken to here, and at the others."""
    coordinator: Coordinator | None = None


class Services:
    """Belongs to the event loop on which it is made."""

    def __init__(self, installation: Installation, limits: RestLimits, metering: RestMetering) -> None:
        self.limits = limits
        self.metering = metering
        self.whereabouts = installation.whereabouts
        self.own_oracle_address = installation.oracle
        self.metrics = ClientMetrics()
        """Of the transactions that are held here."""
        self.manager = TransactionManager(
            installation.settings, installation.store, installation.directory, metrics=self.metrics
        )
        self.oracle = AsyncOracleClient(installation.directory, installation.settings, metrics=self.metrics)
        held = self.held_transactions = HeldTransactions(self.manager, limits, expired=metering.expired)
        metering.read_gauge("pythia_rest_transactions", lambda: held.transactions)
        metering.read_gauge("pythia_rest_transactions_max", lambda: limits.transactions_max)
        metering.read_gauge("pythia_rest_transactions_bytes", lambda: held.written_bytes)
        metering.read_gauge("pythia_rest_transactions_bytes_max", lambda: limits.transactions_bytes_max)
        self.answers = IdempotentAnswers(
            limits.idempotency_keys_max, limits.idempotency_bytes_max, limits.retry_after_ms
        )
        self.overview = Overview(installation.coordinator, installation.settings, installation.oracle)
        self._own = AsyncOracleClient(SoloDirectory(installation.oracle), installation.settings)
        self.own_status = Shared(lambda: self._ask_own_oracle(StatusRequest(), StatusReply), OWN_FRESH_MS)
        """Of the oracle beside this process, primary or not: how it is. Raises ``NoPrimary`` where it is silent."""
        self.own_metrics = Shared(lambda: self._ask_own_oracle(MetricsRequest(), MetricsReply), OWN_FRESH_MS)
        """The same: what it has counted."""
        self._close = installation.close
        self._scheme = installation.scheme

    def require_primary(self, *, told_where: bool = True) -> None:
        """Raise ``Problem`` unless the primary is beside this process; it names the primary's REST, where known, to
        who may be ``told_where``.
        """
        place = self.whereabouts.now()
        if place is None:
            raise Problem("no-primary", "no oracle holds the lease", retry_after_ms=self.limits.retry_after_ms)
        if place.here:
            return
        if not told_where:
            raise Problem("not-primary", "another oracle is primary", retry_after_ms=self.limits.retry_after_ms)
        primary = f"{self._scheme}://{place.rest}" if place.rest else None
        where = f"the primary is {place.holder}" + (
            f", whose REST is at {primary}" if primary else ", which serves no REST"
        )
        more: dict[str, Any] = {"primary": primary}
        raise Problem("not-primary", where, retry_after_ms=self.limits.retry_after_ms, **more)

    def _ask_own_oracle(self, request: Message, answer: type[Answer]) -> asyncio.Future[Answer]:
        now_s = time.monotonic()
        caller: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._own.submit(QuestionTicket(caller, now_s, now_s + OWN_TIMEOUT_MS / 1000, request, (answer,)))
        return caller

    async def close(self) -> None:
        """Roll nothing back: what is open was never visible."""
        await self.held_transactions.close()
        self.oracle.close()
        self._own.close()
        self.overview.close()
        self.manager.close()
        self._close()


async def services_of(request: Request) -> Services:
    """A dependency: what the application was made with.

    Dependencies are coroutines, also where they wait for nothing: FastAPI would call others in a thread each.
    """
    services: Services = request.app.state.services
    return services


async def primary_of(request: Request) -> Services:
    """The same, beside the primary only."""
    services = await services_of(request)
    services.require_primary()
    return services
