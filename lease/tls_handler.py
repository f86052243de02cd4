"""Kazoo's connections over TLS, made as all others of ours are.

By its own way kazoo believes every authority of the system beside the one that it is given, checks no name unless it is
asked to, and leaves a socket open whose handshake failed. And it waits for the socket while an answer that came with
the one before lies decrypted already: until its next ping, a third of a session later.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Sequence
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

from access.service_tls import context_for_connection, in_words, not_agreed
from access.services import TlsFiles


class TlsHandler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Of one client that is told to ``use_ssl``. ``files`` are read for each connection."""

    def __init__(self, files: TlsFiles) -> None:
        super().__init__()
        self._files = files

    def create_connection(
        self, address: tuple[str, int], hostname: str, timeout: float, **_of_kazoo: Any
    ) -> ssl.SSLSocket:
        """See kazoo. ``timeout`` is in seconds. Raises ``OSError`` that says what is wrong."""
        plain = socket.create_connection(address, timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            context = context_for_connection(self._files)
            return context.wrap_socket(plain, server_hostname=self._files.server_name or hostname)
        except OSError as error:
            plain.close()
            words = in_words(not_agreed(error, round(timeout * 1_000)))
            raise ConnectionAbortedError(errno.ECONNABORTED, words) from error  # kazoo tells the second of these

    def select(
        self, readable: Sequence[Any], writable: Sequence[Any], special: Sequence[Any], timeout: float | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """See ``select.select``. What is decrypted already need not be waited for."""
        decrypted = [each for each in readable if isinstance(each, ssl.SSLSocket) and each.pending()]
        limit = 0 if decrypted else timeout
        read, written, happened = super().select(readable, writable, special, limit)
        return [*decrypted, *(each for each in read if each not in decrypted)], written, happened
