"""Kerberos on kazoo's connections, by our own binding of the system's library.

Kazoo takes its SASL from pure-sasl, whose own mechanism for Kerberos needs a package that has to be compiled. So
pure-sasl is told of another mechanism; ZooKeeper does not hear its name. The protection of what is sent afterwards is
left to TLS: ZooKeeper's protocol has none for SASL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from puresasl.mechanisms import Mechanism, mechanisms

from access.kdc import wait_begun
from access.kerberos import in_words
from access.sasl import Agreement, Layer
from access.services import KERBEROS, ZOOKEEPER, Kerberos

NAME: Final = "GSSAPI by Pythia"


def sasl_options(kerberos: Kerberos, limit_ms: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """What to give a ``KazooClient``. ``limit_ms``: how long a KDC is waited for.

    ``tell`` is called, on kazoo's thread, with why no agreement came about: kazoo itself tells nobody.
    """
    return {"mechanism": NAME, "kerberos": kerberos, "limit_ms": limit_ms, "tell": tell}


class KerberosMechanism(Mechanism):  # type: ignore[misc]  # pure-sasl has no types
    """What a connection's talk asks of pure-sasl."""

    name = NAME

    def __init__(self, sasl: Any, kerberos: Kerberos, limit_ms: int, tell: Callable[[str], None]) -> None:
        super().__init__(sasl)
        self._kerberos = kerberos
        self._limit_ms = limit_ms
        self._tell = tell
        self._agreement: Agreement | None = None

    def process(self, challenge: bytes | None = None) -> bytes:
        """What to send after ``challenge`` came; ``None``: first of all. Raises ``OSError``, ``RuntimeError``."""
        try:
            with in_words(self._kerberos, ZOOKEEPER, self.sasl.host):
                return self._answer(challenge)
        except (OSError, RuntimeError) as error:  # the latter where no more threads can be had
            self._tell(str(error))
            raise

    def _answer(self, challenge: bytes | None) -> bytes:
        if self._agreement is None:
            begun = wait_begun(self._kerberos, ZOOKEEPER, self.sasl.host, Layer.NONE, self._limit_ms)
            self._agreement = begun.agreement
            return begun.token
        if challenge is None:
            raise ConnectionError(f"it has nothing to say to Kerberos: where it asks for none, no {KERBEROS} before it")
        answer = self._agreement.answer(challenge)
        self.complete = self._agreement.layer is not None
        return answer


mechanisms[NAME] = KerberosMechanism
