"""The virtual room keeps the promises of the real one: threads, time, connections, processes, the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.simulation.event_loop import VirtualLoop
from tests.simulation.kernel import Kernel, Restlessness, Stuck
from tests.simulation.links import Links
from tests.simulation.network import Endpoint, Network
from tests.simulation.pools import ThreadPoolExecutor
from tests.simulation.processes import Clock, Process, State
from tests.simulation.services import Fate, NoAnswer, Service
from tests.simulation.sockets import Socket, SocketModule
from tests.simulation.story import Story
from tests.simulation.threads import Event, Lock, ThreadingModule

HOUR_US = 3_600_000_000


class Bench:
    """A kernel with what tests need around it."""

    def __init__(self) -> None:
        self.kernel = Kernel("bench", Story(is_told=False), Restlessness())
        self.links = Links(self.kernel)
        self.network = Network(self.kernel, self.links)
        self.seen: list[Any] = []

    def process(self, name: str, rate: float = 1.0) -> Process:
        return Process(name, 1, Clock(lambda: self.kernel.now_us, rate))

    def run(self, *bodies: Callable[[], object], process: Process | None = None, until_us: int = HOUR_US) -> None:
        """Run these, each in a thread of its own, until all have ended."""
        owner = process or self.process("p")
        threads = [self.kernel.spawn(owner, str(number), body) for number, body in enumerate(bodies)]
        self.kernel.run(lambda: all(thread.ended for thread in threads) or self.kernel.now_us > until_us)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.kernel.close()
    assert not made.kernel.defects


class TestTime:
    def test_it_jumps_when_nobody_can_run(self, bench: Bench) -> None:
        bench.run(lambda: bench.kernel.sleep_us(5_000_000))
        assert 5_000_000 <= bench.kernel.now_us < 6_000_000
        assert bench.kernel.steps < 10

    def test_a_process_waits_by_its_own_clock(self, bench: Bench) -> None:
        bench.run(lambda: bench.kernel.sleep_us(1_000_000), process=bench.process("fast", rate=2.0))
        assert bench.kernel.now_us < 600_000

    def test_nobody_left_to_run_is_an_error(self, bench: Bench) -> None:
        with pytest.raises(Stuck):
            bench.run(Event(bench.kernel).wait)

    def test_moments_never_repeat(self, bench: Bench) -> None:
        moments = [bench.kernel.moment() for _ in range(5)]
        assert moments == sorted(set(moments))


class TestThreads:
    def test_a_lock_is_held_by_one(self, bench: Bench) -> None:
        lock = Lock(bench.kernel)

        def body() -> None:
            for _ in range(20):
                with lock:
                    bench.seen.append("in")
                    bench.kernel.sleep_us(10)
                    bench.seen.append("out")

        bench.run(body, body, body)
        assert bench.seen == ["in", "out"] * 60

    def test_a_lock_is_waited_for_no_longer_than_allowed(self, bench: Bench) -> None:
        lock = Lock(bench.kernel)
        lock.acquire()
        bench.run(lambda: bench.seen.append(lock.acquire(timeout=0.5)))
        assert bench.seen == [False]

    def test_an_event_wakes_everybody_who_waits(self, bench: Bench) -> None:
        event = Event(bench.kernel)

        def wait() -> None:
            bench.seen.append(event.wait(10))

        def set_later() -> None:
            bench.kernel.sleep_us(1000)
            event.set()

        bench.run(wait, wait, set_later)
        assert bench.seen == [True, True]
        assert bench.kernel.now_us < 1_000_000

    def test_a_pool_does_as_much_at_once_as_it_may(self, bench: Bench) -> None:
        def body() -> None:
            pool = ThreadPoolExecutor(bench.kernel, 2)
            futures = [pool.submit(bench.kernel.sleep_us, 1_000_000) for _ in range(4)]
            for future in futures:
                future.result()
            pool.shutdown()

        bench.run(body)
        assert 2_000_000 <= bench.kernel.now_us < 3_000_000

    def test_what_has_no_stand_in_says_so(self, bench: Bench) -> None:
        with pytest.raises(NotImplementedError, match="Barrier"):
            _ = ThreadingModule(bench.kernel).Barrier


class TestProcesses:
    def test_a_dead_one_never_runs_again_and_unwinds_nothing(self, bench: Bench) -> None:
        process = bench.process("victim")

        def body() -> None:
            try:
                bench.kernel.sleep_us(1000)
            finally:
                bench.seen.append("unwound")

        bench.kernel.spawn(process, "main", body)
        bench.run(lambda: bench.kernel.sleep_us(10))
        process.state = State.DEAD
        bench.kernel.forget(process)
        bench.run(lambda: bench.kernel.sleep_us(10_000))
        assert not bench.seen

    def test_a_paused_one_goes_on_where_it_was(self, bench: Bench) -> None:
        process = bench.process("paused")

        def body() -> None:
            bench.kernel.sleep_us(1000)
            bench.seen.append("went on")

        bench.kernel.spawn(process, "main", body)
        bench.run(lambda: bench.kernel.sleep_us(10))
        process.state = State.PAUSED
        bench.run(lambda: bench.kernel.sleep_us(50_000))
        assert not bench.seen
        process.state = State.RUNNING
        bench.run(lambda: bench.kernel.sleep_us(1000))
        assert bench.seen


class TestConnections:
    def test_bytes_arrive_whole_and_in_order(self, bench: Bench) -> None:
        accepted: list[Endpoint] = []
        bench.network.listen(bench.process("server"), "server:1", accepted.append)

        def body() -> None:
            socket = self._connect(bench)
            for number in range(50):
                socket.sendall(b"%d," % number)
            bench.kernel.sleep_us(1_000_000)

        bench.run(body)
        assert bytes(accepted[0].received) == b"".join(b"%d," % number for number in range(50))

    def test_what_is_sent_into_a_cut_arrives_once_it_heals(self, bench: Bench) -> None:
        accepted: list[Endpoint] = []
        bench.network.listen(bench.process("server"), "server:1", accepted.append)

        def body() -> None:
            socket = self._connect(bench)
            bench.links.cut("p", "server")
            socket.sendall(b"late")
            bench.kernel.sleep_us(1_000_000)
            bench.seen.append(bytes(accepted[0].received))
            bench.links.heal("p", "server")
            bench.kernel.sleep_us(1_000_000)
            bench.seen.append(bytes(accepted[0].received))

        bench.run(body)
        assert bench.seen == [b"", b"late"]

    def test_nobody_listening_refuses_and_a_cut_says_nothing(self, bench: Bench) -> None:
        def body() -> None:
            with pytest.raises(ConnectionRefusedError):
                self._connect(bench)
            bench.links.cut("p", "server")
            with pytest.raises(TimeoutError):
                self._connect(bench)

        bench.run(body)

    def test_the_kernel_of_a_killed_process_says_so_and_a_lost_machine_does_not(self, bench: Bench) -> None:
        def body() -> None:
            for vanishes in (False, True):
                server = bench.process("server")
                bench.network.listen(server, "server:1", lambda endpoint: None)
                socket = self._connect(bench)
                for tell in server.at_death:
                    tell(vanishes)
                with pytest.raises(TimeoutError if vanishes else ConnectionResetError):
                    socket.recv(10)

        bench.run(body)

    @staticmethod
    def _connect(bench: Bench) -> Socket:
        return SocketModule(bench.kernel, bench.network).create_connection(("server", 1), timeout=1.0)


class TestServices:
    @pytest.mark.parametrize("fate", [Fate.LOST, Fate.ANSWER_LOST, Fate.LATE])
    def test_no_answer_says_nothing_about_the_effect(self, bench: Bench, fate: Fate) -> None:
        service = Service(bench.kernel, bench.links, "store")
        service.health.unsure_share = 1.0
        process = bench.process("p")
        effects: list[int] = []

        def body() -> None:
            with pytest.raises(NoAnswer):
                service.call(process, "put", [lambda: effects.append(1)], timeout_us=1_000_000, fates=[fate])
            bench.seen.append(len(effects))

        bench.run(body, process=process)
        service.deliver_late()
        assert len(effects) == (0 if fate is Fate.LOST else 1)
        assert bench.seen[0] <= len(effects)

    def test_a_request_takes_effect_though_its_caller_is_paused(self, bench: Bench) -> None:
        service = Service(bench.kernel, bench.links, "store")
        process = bench.process("p")

        def body() -> None:
            service.call(process, "put", [lambda: bench.seen.append("effect")], timeout_us=1_000_000)

        bench.kernel.spawn(process, "main", body)
        bench.kernel.run(lambda: service.requests == 1)
        process.state = State.PAUSED
        bench.run(lambda: bench.kernel.sleep_us(100_000), process=bench.process("other"))
        assert bench.seen == ["effect"]


class TestEventLoop:
    def test_asyncio_itself_runs_on_it(self, bench: Bench) -> None:
        process = bench.process("p")
        loop = VirtualLoop(bench.kernel, process, bench.network)  # type: ignore[abstract]

        async def work() -> str:
            pool = ThreadPoolExecutor(bench.kernel, 1)
            slept = asyncio.get_running_loop().run_in_executor(pool, bench.kernel.sleep_us, 2_000_000)  # type: ignore[arg-type]
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await asyncio.Event().wait()
            await slept
            first, second = await asyncio.gather(asyncio.sleep(1, "a"), asyncio.sleep(1, "b"))
            return first + second

        bench.run(lambda: bench.seen.append(loop.run_until_complete(work())), process=process)
        assert bench.seen == ["ab"]
        assert 3_000_000 <= bench.kernel.now_us < 4_000_000
