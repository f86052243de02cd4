"""One connection to the gateway, with every timeout set, and a cheap look at whether the other side has hung up."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from store.forking import leave_at_fork
from store.hbase.addresses import Address
from store.hbase.settings import PoolSettings
from store.hbase.thrift_types import Connection

Buffer: TypeAlias = bytes | memoryview


class GatewayConnection:
    """A Thrift connection to one gateway; ``client`` has the gateway's calls. For one thread at a time."""

    def __init__(self, address: Address, settings: PoolSettings) -> None:
        self.address = address
        self._settings = settings
        self._connection = Connection(
            address.host,
            address.port,
            timeout=settings.connect_timeout_ms,
            autoconnect=False,
            protocol=settings.protocol,
            transport=settings.transport,
        )
        self._connection.open()
        self._socket = self._connection.transport.sock
        self._socket.settimeout(settings.request_timeout_ms / 1_000)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self.client: Any = self._connection.client
        leave_at_fork(self)

    @property
    def framed(self) -> bool:
        """Whether each message goes with its length before it."""
        return self._settings.transport == "framed"

    def send(self, request: Buffer) -> None:
        """Send bytes as they are, past Thrift's library, which holds none of either side between two requests."""
        self._socket.sendall(request)

    def receive_into(self, buffer: memoryview) -> int:
        """Fill some of ``buffer`` with what arrives; 0 bytes once the gateway has hung up."""
        received: int = self._socket.recv_into(buffer)
        return received

    def is_usable(self) -> bool:
        """Between two requests nothing is to be read: what is there is a hang-up, or the rest of a lost answer."""
        return not self._poll.poll(0)

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
        self._connection.close()

    def leave_to_parent(self) -> None:
        """See ``Leaving``. Whatever is asked of it in the child fails, and hangs up nothing."""
        self._socket.close()  # the descriptor only: Thrift's library would shut the parent's connection down
