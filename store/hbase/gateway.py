"""Asking the gateway: which calls are repeated, how often, and for how long.

Invariant: a call is sent a second time only through ``repeat``, which is for reads and for writes that name their
timestamp. ``once`` sends at most once; what it repeats is the *connecting*, before anything has been sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_exponential, wait_random

from store.errors import StoreUnavailable
from store.hbase.connection import GatewayConnection
from store.hbase.failures import (
    ANSWERS,
    BREAKDOWNS,
    AnswerSlow,
    GatewayFailure,
    NotSent,
    RegionsUnsettled,
    meaning_of,
    not_connected,
)
from store.hbase.gateways import gateways_at
from store.hbase.pool import ConnectionPool
from store.hbase.settings import PoolSettings
from store.hbase.thrift_types import Hbase

T = TypeVar("T")
Call = Callable[[GatewayConnection], T]

_RETRY_WAIT_SECONDS_FIRST = 0.05


class Gateway:
    """HBase's Thrift gateway at ``address``: ``"host:port"``, or several of them, separated by commas.

    ``service``: what it is asked, a module of Thrift's. Every method raises only errors of ``store.errors``.
    """

    def __init__(self, address: str, settings: PoolSettings, service: Any = Hbase) -> None:
        self._addresses, self._settings = gateways_at(address, settings)
        self._service = service
        self._pool = ConnectionPool(self._connect, self._settings, answers=ANSWERS)

    @property
    def framed(self) -> bool:
        """Whether each message goes with its length before it."""
        return self._addresses.framed

    def repeat(
        self,
        call: Call[T],
        *,
        prefer: GatewayConnection | None = None,
        before_each: Callable[[], None] = lambda: None,
    ) -> T:
        """``call`` on a connection, on failure again at once on a fresh one, then with growing pauses.

        ``before_each`` is called before each of these, without a connection, since it may ask the gateway, too.

        ``StoreUnavailable`` when it kept failing for ``unavailable_after_ms`` after the first failure, or the last
        ``AnswerSlow``: whoever raises that sees to it that it comes to an end.
        """
        return self._persist(call, GatewayFailure, prefer, before_each)

    def once(self, call: Call[T]) -> T:
        """``call``, sent once at most.

        ``GatewayFailure`` when it was sent and nothing is known of its end; any other ``StoreUnavailable`` when it was
        not sent.
        """
        return self._persist(call, NotSent, None, lambda: None)

    def if_idle(self, connection: GatewayConnection, call: Call[object]) -> None:
        """``call`` on this very connection if it is free right now, else not at all; its failure is nobody's concern.

        For clean-up that the gateway does by itself after a while.
        """
        try:
            with self._pool.lease_if_idle(connection) as leased:
                if leased:
                    call(connection)
        except BREAKDOWNS:
            return

    def close(self) -> None:
        """Close the connections; later calls raise ``StoreClosed``."""
        self._pool.close()

    def _persist(
        self,
        call: Call[T],
        repeated: type[GatewayFailure],
        prefer: GatewayConnection | None,
        before_each: Callable[[], None],
    ) -> T:
        began_ms = _now_ms()

        def attempt(*, fresh: bool, prefer: GatewayConnection | None = None) -> T:
            before_each()
            return self._attempt(call, fresh=fresh, prefer=prefer)

        try:
            return attempt(fresh=False, prefer=prefer)
        except repeated:
            pass  # The usual case: a connection that died since it was last used.
        try:
            result: T = self._retrying(repeated)(attempt, fresh=True)
            return result
        except repeated as failure:
            raise StoreUnavailable(
                f"the HBase gateway at {self._addresses} has not served the call for "
                f"{_now_ms() - began_ms:.0f} ms: {failure}"
            ) from failure

    def _retrying(self, repeated: type[GatewayFailure]) -> Retrying:
        growing = wait_exponential(multiplier=_RETRY_WAIT_SECONDS_FIRST, max=self._settings.retry_wait_ms_max / 1_000)
        limit_seconds, slow_until_s = self._settings.unavailable_after_ms / 1_000, 0.0

        def stop(state: RetryCallState) -> bool:
            nonlocal slow_until_s
            since_first_s = state.seconds_since_start or 0.0
            if state.outcome is not None and isinstance(state.outcome.exception(), AnswerSlow):
                slow_until_s = since_first_s
                return False
            return since_first_s - slow_until_s >= limit_seconds

        return Retrying(
            retry=retry_if_exception_type(repeated),
            stop=stop,
            wait=growing + wait_random(0, _RETRY_WAIT_SECONDS_FIRST),
            reraise=True,
        )

    def _attempt(self, call: Call[T], *, fresh: bool, prefer: GatewayConnection | None = None) -> T:
        try:
            with self._pool.lease(fresh=fresh, prefer=prefer) as connection:
                return self._ask(connection, call)
        except (*ANSWERS, *BREAKDOWNS) as error:
            raise meaning_of(error) from error

    def _ask(self, connection: GatewayConnection, call: Call[T]) -> T:
        """``call``; a failure counts against the gateway, so that the next connection is made to another one."""
        try:
            return call(connection)
        except (*ANSWERS, *BREAKDOWNS) as error:
            failure = meaning_of(error)
            if isinstance(failure, GatewayFailure) and not isinstance(failure, RegionsUnsettled):
                self._addresses.failed(connection.address, _now_ms())
            raise

    def _connect(self) -> GatewayConnection:
        """A connection to the first gateway in turn that accepts one."""
        failures: list[str] = []
        for address in self._addresses.in_turn(_now_ms()):
            try:
                return GatewayConnection(address, self._settings, self._service)
            except BREAKDOWNS as error:
                self._addresses.failed(address, _now_ms())
                failures.append(f"{address}: {meaning_of(error)}")
        raise not_connected(failures)


def _now_ms() -> float:
    return time.monotonic() * 1_000
