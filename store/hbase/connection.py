"""One connection to the gateway, with every timeout set, and a cheap look at whether the other side has hung up."""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from thriftpy2.transport import TTransportException

from access.service_tls import context_for_connection, not_agreed
from store.forking import leave_at_fork
from store.hbase.addresses import Address
from store.hbase.carried import CarriedSocket
from store.hbase.http import HttpTalk
from store.hbase.http_transport import HttpSocket
from store.hbase.kerberos import SealedSocket, agree
from store.hbase.numbered_client import NumberedClient
from store.hbase.punctual import PunctualSocket
from store.hbase.settings import PoolSettings
from store.hbase.thrift_types import Hbase, TBinaryProtocol, TBufferedTransport, TFramedTransport, TSocket

Buffer: TypeAlias = bytes | memoryview


class GatewayConnection:
    """A Thrift connection to one gateway; ``client`` has its calls, of ``service``. For one thread at a time."""

    def __init__(self, address: Address, settings: PoolSettings, service: Any = Hbase) -> None:
        self.address = address
        self._settings = settings
        opened = TSocket(address.host, address.port, socket_timeout=settings.connect_timeout_ms)
        self._transport = TFramedTransport(opened) if address.framed else TBufferedTransport(opened)
        context = context_for_connection(settings.tls) if address.tls else None
        try:
            self._transport.open()
        except TTransportException as error:  # which says only that it did not come about
            raise error.__context__ if isinstance(error.__context__, OSError) else error from None
        if context is not None:
            opened.sock = self._secured(opened.sock, context)
        self._connected: socket.socket = opened.sock
        sealing = None
        if address.kerberos and not address.http:
            sealing = agree(opened.sock, settings.kerberos, address.host, settings.connect_timeout_ms)
        self._poll = select.poll()
        self._poll.register(opened.sock, select.POLLIN)
        punctual = PunctualSocket(opened.sock, expects_http=address.http)
        self._socket: PunctualSocket | CarriedSocket = punctual
        if sealing is not None:
            self._socket = SealedSocket(punctual, sealing)
        elif address.http:
            who = settings.kerberos if address.kerberos else None
            self._socket = HttpSocket(punctual, HttpTalk(address), address.host, who, settings.connect_timeout_ms)
        opened.sock = self._socket
        self._socket.settimeout(settings.request_timeout_ms / 1_000)
        self.client: Any = NumberedClient(service, TBinaryProtocol(self._transport, decode_response=False))
        leave_at_fork(self)

    def _secured(self, opened: socket.socket, context: ssl.SSLContext) -> ssl.SSLSocket:
        """Within ``connect_timeout_ms``, which ``opened`` has for its limit and a handshake takes as a whole."""
        try:
            return context.wrap_socket(opened, server_hostname=self._settings.tls.server_name or self.address.host)
        except OSError as error:
            raise not_agreed(error, self._settings.connect_timeout_ms) from None

    def next_number(self) -> int:
        """For the next request that is sent past Thrift's library."""
        number: int = self.client.next_number()
        return number

    def send(self, request: Buffer) -> None:
        """Send bytes as they are, past Thrift's library, which holds none of either side between two requests."""
        self._socket.sendall(request)

    def receive_into(self, buffer: memoryview) -> int:
        """Fill some of ``buffer`` with what arrives; 0 bytes once the gateway has hung up."""
        return self._socket.recv_into(buffer)

    def is_usable(self) -> bool:
        """Between two requests nothing is to be read: what is there is a hang-up, or the rest of a lost answer."""
        if isinstance(self._socket, HttpSocket) and self._socket.is_over:
            return False
        return self._has_nothing_to_say() if self.address.tls else not self._poll.poll(0)

    def _has_nothing_to_say(self) -> bool:
        """Nothing but what TLS says for itself, such as the tickets of a session; be it on its way or decrypted."""
        self._connected.settimeout(0)
        try:
            self._connected.recv(1)
        except ssl.SSLWantReadError:
            return True
        except OSError:
            return False
        finally:
            self._connected.settimeout(self._settings.request_timeout_ms / 1_000)
        return False

    @contextmanager
    def patient(self, wait_ms: int | None = None) -> Iterator[None]:
        """Wait so long for bytes from the gateway; without ``wait_ms`` as long as for making and dropping tables."""
        self._socket.settimeout((wait_ms or self._settings.administration_timeout_ms) / 1_000)
        try:
            yield
        finally:
            self._socket.settimeout(self._settings.request_timeout_ms / 1_000)

    def close(self) -> None:
        """Hang up."""
        self._transport.close()

    def __del__(self) -> None:
        """Hang up for whoever has left a store open."""
        self.close()

    def leave_to_parent(self) -> None:
        """See ``Leaving``. Whatever is asked of it in the child fails, and hangs up nothing."""
        self._socket.close()  # the descriptor only: Thrift's library would shut the parent's connection down
