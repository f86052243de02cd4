"""Virtual TCP: connections whose bytes arrive in order, late, in pieces, or not at all.

An *endpoint* is a process's end of a connection, as its kernel keeps it: bytes arrive there while the process is
paused, and when the process is killed its kernel says so to the other end; when the whole machine goes, nobody does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.simulation.kernel import Kernel, WaitQueue
from tests.simulation.links import Links
from tests.simulation.processes import Process, State

SYN_AGAIN_US = 200_000
"""How often a connection attempt is repeated while nobody answers."""


class Endpoint:
    """One end of a connection."""

    def __init__(self, network: Network, process: Process, number: int, *, is_client: bool) -> None:
        self.process = process
        self.number = number
        self.is_client = is_client
        """Whether it is the end that made the connection."""
        self.received = bytearray()
        self.ended = False
        """The other end says that nothing more will come."""
        self.broken = False
        """The connection was reset: nothing can be sent or received."""
        self.closed = False
        """This end has been closed by its own process."""
        self.on_change: Callable[[], None] = lambda: None
        self.peer: Endpoint
        self._network = network
        self._last_arrival_us = 0
        self._held: list[Callable[[], None]] = []
        self._holding = False

    def send(self, data: bytes) -> None:
        """Send bytes; whether they arrive, nobody knows."""
        self._network.tap(self, data)
        for piece in self._network.pieces(data):
            self._deliver(partial(self.peer.take, piece))

    def close(self) -> None:
        """Say that nothing more will come, after what was sent."""
        if not self.closed:
            self.closed = True
            self._deliver(self.peer.take_end)

    def reset(self) -> None:
        """Break the connection off; what was sent and has not arrived may be lost."""
        self.closed = True
        self._deliver(self.peer.take_reset)

    def vanish(self) -> None:
        """The machine is gone: nothing is said, and what arrives is not heard."""
        self.closed = True
        self._network.vanished.add(self)

    def take(self, data: bytes) -> None:
        """Bytes arrive."""
        if self in self._network.vanished and self.process.name in self._network.dark:
            return
        if self.closed:
            self.peer.take_reset()
        elif not self.broken:
            self.received += data
            self.on_change()

    def take_end(self) -> None:
        """The end arrives."""
        if not self.closed and not self.broken:
            self.ended = True
            self.on_change()

    def take_reset(self) -> None:
        """A reset arrives."""
        if not self.closed and not self.broken:
            self.broken = True
            self.on_change()

    def read(self, bytes_max: int) -> bytes:
        """Take out what has arrived."""
        data = bytes(self.received[:bytes_max])
        del self.received[:bytes_max]
        return data

    @property
    def is_readable(self) -> bool:
        """Whether a read would not have to wait."""
        return bool(self.received) or self.ended or self.broken

    def _deliver(self, arrive: Callable[[], None]) -> None:
        """Let something arrive at the other end, after all that was sent before."""
        kernel = self._network.kernel
        self._last_arrival_us = max(self._last_arrival_us + 1, kernel.now_us + self._network.links.travel_us())
        kernel.after(self._last_arrival_us - kernel.now_us, lambda: self._arrive(arrive))

    def _arrive(self, arrive: Callable[[], None]) -> None:
        source, target = self.process.name, self.peer.process.name
        self._held.append(arrive)
        if not self._holding:
            self._holding = True
            self._network.links.when_open(source, target, self._release)

    def _release(self) -> None:
        self._holding = False
        held, self._held = self._held, []
        for arrive in held:
            arrive()


class Network:
    """Listening addresses and connections of the room."""

    def __init__(self, kernel: Kernel, links: Links) -> None:
        self.kernel = kernel
        self.links = links
        self.connections: list[Endpoint] = []
        """The clients' ends of the connections that may still be open, oldest first."""
        self.vanished: set[Endpoint] = set()
        self.dark: set[str] = set()
        """Hosts that are gone: they do not even refuse."""
        self.split_share = 0.1
        self.tap: Callable[[Endpoint, bytes], None] = lambda endpoint, data: None
        """Told of everything that is sent."""
        self._random = kernel.stream("network")
        self._listeners: dict[str, tuple[Process, Callable[[Endpoint], None]]] = {}
        self._numbers = 0

    def listen(self, process: Process, address: str, accept: Callable[[Endpoint], None]) -> Callable[[], None]:
        """Take connections to ``address`` until the returned function is called or the process dies."""
        if address in self._listeners:
            raise OSError(98, f"{address}: address already in use")
        self._listeners[address] = (process, accept)
        self.dark.discard(process.name)

        def stop() -> None:
            if self._listeners.get(address, (None,))[0] is process:
                del self._listeners[address]

        def die(vanishes: bool) -> None:
            stop()
            if vanishes:
                self.dark.add(process.name)

        process.at_death.append(die)
        return stop

    def connect(self, address: str, timeout_seconds: float) -> Endpoint:
        """Connect the running thread's process; raises ``ConnectionRefusedError`` or ``TimeoutError``."""
        attempt = self.attempt(self.kernel.running().process, address)
        self.kernel.point("connect")
        return attempt.result(timeout_seconds)

    def attempt(self, process: Process, address: str) -> Attempt:
        """A connection attempt that is under way."""
        attempt = Attempt(self, process, address)
        self.kernel.after(self.links.travel_us(), attempt.arrive)
        return attempt

    def pieces(self, data: bytes) -> list[bytes]:
        """Sent together, bytes need not arrive together."""
        if len(data) < 2 or self._random.random() >= self.split_share:
            return [data]
        cut = self._random.randrange(1, len(data))
        return [data[:cut], data[cut:]]

    def break_one(self) -> str | None:
        """Cut one of the open connections, at both ends; returns whose."""
        self.connections = [each for each in self.connections if not (each.closed or each.broken or each.ended)]
        if not self.connections:
            return None
        chosen = self.connections[self._random.randrange(len(self.connections))]
        for end in (chosen, chosen.peer):
            self.kernel.after(self.links.travel_us(), end.take_reset)
        return f"{chosen.process} – {chosen.peer.process}"

    def accept(self, process: Process, address: str) -> Endpoint | None:
        """A new connection from ``process``: its end; ``None`` where nobody listens."""
        listening = self._listeners.get(address)
        if listening is None:
            return None
        self._numbers += 1
        near = Endpoint(self, process, self._numbers, is_client=True)
        far = Endpoint(self, listening[0], self._numbers, is_client=False)
        near.peer, far.peer = far, near
        for end in (near, far):
            end.process.at_death.append(self._closing(end))
        self.connections.append(near)
        listening[1](far)
        return near

    def answers(self, process: Process, host: str) -> bool:
        """Whether a host says anything at all to a process."""
        reachable = self.links.is_open(process.name, host) and self.links.is_open(host, process.name)
        return reachable and host not in self.dark

    @staticmethod
    def _closing(end: Endpoint) -> Callable[[bool], None]:
        def die(vanishes: bool) -> None:
            if end.closed:
                return
            if vanishes:
                end.vanish()
            else:
                end.reset()

        return die


class Attempt:
    """A connection attempt: repeated while nobody answers, until its caller gives up or dies."""

    def __init__(self, network: Network, process: Process, address: str) -> None:
        self._network = network
        self._process = process
        self._address = address
        self._host = address.rpartition(":")[0]
        self._waiting = WaitQueue(network.kernel)
        self._endpoint: Endpoint | None = None
        self._ended = False
        self._tell: Callable[[], object] = lambda: None

    def when_ended(self, tell: Callable[[], object]) -> None:
        """Have it told when something came of the attempt."""
        self._tell = tell

    def give_up(self) -> None:
        """Wait no longer."""
        self._ended = True
        if self._endpoint is not None:
            self._endpoint.close()

    def endpoint(self) -> Endpoint:
        """What came of it. Raises ``ConnectionRefusedError``."""
        if self._endpoint is None:
            raise ConnectionRefusedError(111, "Connection refused")
        return self._endpoint

    def arrive(self) -> None:
        """Knock at the host."""
        network = self._network
        if self._ended or self._process.state is State.DEAD:
            return
        if not network.answers(self._process, self._host):
            network.kernel.after(SYN_AGAIN_US, self.arrive)
            return
        self._endpoint = network.accept(self._process, self._address)
        network.kernel.after(network.links.travel_us(), self._answer)

    def result(self, timeout_seconds: float) -> Endpoint:
        """Wait for what comes of it."""
        self._waiting.wait_for(lambda: self._ended, timeout_seconds)
        if not self._ended:
            self.give_up()
            raise TimeoutError("timed out")
        return self.endpoint()

    def _answer(self) -> None:
        if not self._ended:
            self._ended = True
            self._waiting.wake_all()
            self._tell()
