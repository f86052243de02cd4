"""How a connection begins with a service that asks for Kerberos: in a thread, for a KDC may be asked, and the library
waits for one that does not answer for a minute and more, whatever limit its caller has.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Final, NamedTuple

from access.kerberos import context_for_connection, in_words
from access.sasl import Agreement, Layer
from access.services import Kerberos

WAITING_FOR_KDC_MAX = 64
"""Connections of a process that are begun at once."""
_waiting: Final[set[threading.Thread]] = set()


class Begun(NamedTuple):
    """What is to be agreed on, and what to send first for it."""

    agreement: Agreement
    token: bytes


def begin(kerberos: Kerberos, service: str, host: str, strongest: Layer) -> Future[Begun]:
    """Begin with ``service`` at ``host``; frames are sealed by no layer that is stronger than ``strongest``.

    Raises ``ConnectionError``, as the future does.
    """
    if sum(thread.is_alive() for thread in tuple(_waiting)) >= WAITING_FOR_KDC_MAX:  # a fork leaves dead ones
        raise ConnectionError(f"Kerberos: {WAITING_FOR_KDC_MAX} connections wait for a KDC already")
    begun: Future[Begun] = Future()
    begun.set_running_or_notify_cancel()  # whoever waits no more does not cancel what goes on

    def ask() -> None:
        try:
            with in_words(kerberos, service, host):
                agreement = Agreement(context_for_connection(kerberos, service, host), strongest)
                begun.set_result(Begun(agreement, agreement.begin()))
        except BaseException as error:
            begun.set_exception(error)
        finally:
            _waiting.discard(thread)

    thread = threading.Thread(target=ask, name="Kerberos", daemon=True)  # nobody's end waits for a KDC
    _waiting.add(thread)
    thread.start()
    return begun


def wait_begun(kerberos: Kerberos, service: str, host: str, strongest: Layer, limit_ms: int) -> Begun:
    """The same, waited for. Raises ``OSError``, as ``TimeoutError`` where no KDC answers in ``limit_ms``."""
    try:
        return begin(kerberos, service, host, strongest).result(limit_ms / 1_000)
    except FutureTimeout:
        raise no_kdc(limit_ms) from None


def no_kdc(limit_ms: int) -> TimeoutError:
    """What to raise where ``begin`` has come to no end in ``limit_ms``."""
    return TimeoutError(f"Kerberos: no KDC has answered in {limit_ms} ms")
