"""One oracle process: an event loop that serves, a thread that keeps the role, and an orderly way out.

Asked to stop (SIGTERM, SIGINT), a primary takes nothing new, finishes what is under way, releases the lease so that a
standby takes over at once, and ends with exit code 0.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import signal
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from access.tls import ServerTls
from commit_table import CommitTable, system_table, table_name
from commit_table.recorder import CommitRecorder
from commit_table.timestamps import compose
from lease import (
    Candidate,
    Contender,
    Coordinator,
    Historian,
    Holding,
    LeaseRecord,
    MayNotServe,
    PastTenure,
    PrimaryFinder,
    Succession,
    monotonic_ms,
    wall_ms,
)
from lease.solo import SoloCandidate, SoloRegistry
from logs.lines import Standing
from store import CellStore
from store.bulk import BulkPutter
from store.hbase.addresses import parse_addresses
from tso.decisions.oracle import Moment
from tso.levels import LevelAgreement
from tso.metering import Metering
from tso.persistence.floor import FloorOfData
from tso.persistence.identity import DataAgreement
from tso.persistence.pipeline import Pipeline
from tso.roles import Progress, RoleKeeper
from tso.serving.connection import Connection
from tso.serving.protection import reception_of
from tso.serving.server import Server
from tso.settings import ServeSettings
from tso.warmth import warm_kernels
from wire import BadRequest, DrainReply, HandoverReply, NotPrimary

log = logging.getLogger(__name__)

HELD_LOOK_INTERVAL_SECONDS: Final = 0.2
LEASES_TO_STOP_MAX: Final = 20
"""How many leases the lease's thread may take to end a tenure that ended by itself: twice what its calls may take."""
STOP_LOOK_MS_MIN: Final = 2_000
"""What a lease counts there at least: an oracle that is alone waits for HBase, however short its lease."""

Returned = TypeVar("Returned")
FindPrimary = Callable[[], LeaseRecord | None]


class Beside(Protocol):
    """What runs as long as the process serves, such as REST."""

    async def run(self, oracle: str) -> None:
        """Until it is cancelled; ``oracle``: the address that clients are told."""

    async def transactions_held(self) -> int:
        """How many callers' transactions would end with it."""
        ...


class OracleProcess:
    """Everything of one process but its signals and its adapters.

    ``coordinator``: where the lease is kept; ``None``: this oracle is alone, and its epoch is kept in the store.
    ``putter``: the way of commits into that same store.
    ``announce`` gets a line at each change of role, ``standing`` the role itself, for the log. ``give_up`` ends the
    process at once: it is called where the lease's thread hangs, so that there is no orderly way out any more.
    """

    def __init__(
        self,
        settings: ServeSettings,
        coordinator: Coordinator | None,
        store: CellStore,
        putter: BulkPutter,
        *,
        announce: Callable[[str], None],
        standing: Standing | None = None,
        beside: Beside | None = None,
        give_up: Callable[[], None] = lambda: None,
    ) -> None:
        self._beside = beside
        self._give_up = give_up
        self._settings = settings
        self._standing = standing or Standing()
        self._coordinator = coordinator
        self._store = store
        self._table = CommitTable(store, table_name(settings.root))
        self._recorder = CommitRecorder(putter, table_name(settings.root))
        self._levels = LevelAgreement(store, coordinator, settings.root, settings.lease.request_timeout_ms)
        self._data = DataAgreement(settings, coordinator, store)
        self._announce = announce
        self._stop = asyncio.Event()
        self._handing_over: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None
        self._historian: Historian | None = None
        self.metering = Metering(lambda: monotonic_ms() / 1000)
        now_s = self.metering.clock_s()
        self.server = Server(settings.name, settings.limits, self.metering, reception_of(settings, now_s))
        self._tls = None if settings.tls is None else ServerTls(settings.tls, now_s, tells_why=True)

    def stop(self) -> None:
        """On the event loop: begin the orderly way out."""
        self._stop.set()

    async def run(self) -> int:
        """Serve until `stop`; returns the exit code. Raises ``OSError`` when the address cannot be listened on."""
        settings = self._settings
        address = await self.server.listen(settings.listen_host, settings.listen_port, self._tls)
        front = _LoopFront(
            self.server,
            settings,
            recorder=self._recorder,
            table=self._table,
            loop=asyncio.get_running_loop(),
            announce=self._announce,
            standing=self._standing,
            give_up=self._give_up,
        )
        keeper = self._keeper(settings.advertise or address, front)
        self.server.hand_over = partial(self._begin_handover, keeper)
        self.server.drain = partial(self._begin_drain, keeper)
        self._announce(f"serving on {address} as standby")
        thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="lease")
        roles = asyncio.get_running_loop().run_in_executor(thread, keeper.run)
        stop = asyncio.create_task(self._stop.wait())
        beside = None if self._beside is None else asyncio.create_task(self._beside.run(settings.advertise or address))
        either: list[asyncio.Future[Any]] = [roles, stop]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if self.server.pipeline is not None:
            await self.server.pipeline.drain(settings.limits.drain_ms_max)
        keeper.stop()
        try:
            await roles
        except MayNotServe as error:
            log.error("%s", str(error))
            return 1
        except Exception:
            log.exception("the lease's thread failed")
            return 1
        finally:
            stop.cancel()
            if self._historian is not None:
                self._historian.close()
            for task in filter(None, (self._handing_over, self._draining)):
                task.cancel()
            if beside is not None:
                beside.cancel()
                await asyncio.wait([beside])
            await self.server.close()
        return 0

    def _refused(self, connection: Connection, request_id: int) -> bool:
        """Whether a drain or a hand-over has to be refused, since another is under way; then that was said."""
        if self._draining is not None and not self._draining.done():
            why = "it is being drained already: look at pythia tso status"
        elif self._handing_over is not None and not self._handing_over.done():
            why = "it is handing over: look at pythia tso status, and ask again"
        else:
            return False
        connection.send(BadRequest(why), request_id)
        return True

    def _begin_handover(self, keeper: RoleKeeper, connection: Connection, request_id: int) -> None:
        if self._refused(connection, request_id):
            return
        self._handing_over = asyncio.create_task(self._hand_over(keeper, connection, request_id))

    async def _hand_over(self, keeper: RoleKeeper, connection: Connection, request_id: int) -> None:
        """Finish what is under way, give the lease back, and only then say so: whoever asked can look who took it."""
        pipeline = self.server.pipeline
        if pipeline is None:  # it ended between the request and this task
            connection.send(self.server.not_primary, request_id)
            return
        await pipeline.drain(self._settings.limits.drain_ms_max)
        await self._release(keeper, pipeline.oracle.epoch)
        connection.send(HandoverReply(pipeline.oracle.epoch), request_id)

    def _begin_drain(self, keeper: RoleKeeper, connection: Connection, request_id: int, limit_ms: int) -> None:
        if self._refused(connection, request_id):
            return
        self._draining = asyncio.create_task(self._drain(keeper, connection, request_id, limit_ms))

    async def _drain(self, keeper: RoleKeeper, connection: Connection, request_id: int, limit_ms: int) -> None:
        """As `_hand_over`, and end after it; but where something is still under way in the end, go on serving.

        What is held beside is waited for after the hand-over: those transactions live through it, and no other begins.
        """
        ends_s = monotonic_ms() / 1000 + limit_ms / 1000
        pipeline = self.server.pipeline
        epoch = 0
        if pipeline is not None:
            finished = await pipeline.finish(limit_ms)
            if not finished and (self._stop.is_set() or not pipeline.ended):  # else the lease was lost: nothing is owed
                under_way = pipeline.under_way
                if not self._stop.is_set():
                    pipeline.resume()
                log.warning("not drained: %d transactions are still under way after %d ms", under_way, limit_ms)
                connection.send(DrainReply(pipeline.oracle.epoch, max(1, under_way)), request_id)
                return
            epoch = pipeline.oracle.epoch
            await self._release(keeper, epoch)
        held = await self._held_beside(ends_s)
        if held:
            log.warning("not drained: REST beside still holds %d transactions after %d ms", held, limit_ms)
            connection.send(DrainReply(epoch, held), request_id)
            return
        log.info("drained: this process ends")
        connection.send(DrainReply(epoch), request_id)
        self.stop()

    async def _held_beside(self, ends_s: float) -> int:
        """Transactions that are still held beside this process at ``ends_s``; waits until there is none."""
        told = False
        while self._beside is not None and (held := await self._beside.transactions_held()):
            if monotonic_ms() / 1000 >= ends_s:
                return held
            if not told:
                log.info("being drained: waits for %d transactions that REST beside holds", held)
            told = True
            await asyncio.sleep(HELD_LOOK_INTERVAL_SECONDS)
        return 0

    async def _release(self, keeper: RoleKeeper, epoch: int) -> None:
        """Give the lease of ``epoch`` back; done when this returns."""
        loop, released = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            loop.call_soon_threadsafe(released.set)

        keeper.step_aside(epoch, tell)
        await released.wait()
        self.metering.handovers += 1

    def _keeper(self, advertised: str, front: _LoopFront) -> RoleKeeper:
        front.advertised = advertised
        self.server.own.lease_ms = self._settings.lease.lease_ms
        self.server.own.rest_address = self._settings.rest_advertise or ""
        contender, find_primary = (
            self._alone(advertised) if self._coordinator is None else self._elected(self._coordinator, front)
        )
        return RoleKeeper(contender, self._settings.lease, front, warm_up=self._warm_up, find_primary=find_primary)

    def _warm_up(self) -> None:
        self.server.own.warm = False
        log.info(
            "warms up, and is not to be primary before: the first start of an installation compiles for half a minute"
        )
        warm_kernels()
        self._data.look()
        self._table.create()
        self._levels.agree()
        self._data.agree()
        self.server.own.warm = True
        log.info("is warm: ready to become primary")

    def _elected(self, coordinator: Coordinator, front: _LoopFront) -> tuple[Contender, FindPrimary]:
        settings = self._settings
        candidate = Candidate(
            coordinator,
            settings.lease,
            settings.name,
            [front.advertised, *filter(None, [settings.rest_advertise])],
            monotonic_ms=monotonic_ms,
            wall_ms=wall_ms,
            timestamp_of_ms=compose,
            new_nonce=_new_nonce,
            root=settings.root,
            floor=FloorOfData(self._store, settings.root, self._data.look),
            first_level=self._levels.first_level,
        )
        historian = self._historian = Historian(
            coordinator, settings.root, timeout_ms=settings.lease.request_timeout_ms
        )
        front.succession = lambda: candidate.succession
        front.note = lambda epoch: self._note(historian, candidate.succession, front.advertised, epoch)
        finder = PrimaryFinder(coordinator, settings.root, timeout_ms=settings.lease.request_timeout_ms)
        return candidate, finder.current

    def _note(self, historian: Historian, came: Succession | None, advertised: str, epoch: int) -> None:
        """Have a tenure that serves now added to the history."""
        if came is None:
            return
        outage_ms = came.outage_ms(monotonic_ms())
        historian.note(
            PastTenure(
                epoch,
                self._settings.name,
                advertised,
                self._settings.rest_advertise or "",
                wall_ms(),
                came.cause,
                None if outage_ms is None else round(outage_ms),
                at_least=outage_ms is not None and not came.seen,
            )
        )

    def _alone(self, advertised: str) -> tuple[Contender, FindPrimary]:
        registry = SoloRegistry(self._store, system_table(self._settings.root, "epoch"))
        candidate = SoloCandidate(
            registry,
            self._settings.lease,
            advertised,
            wall_ms=wall_ms,
            timestamp_of_ms=compose,
            nonce=_new_nonce(),
        )
        return candidate, lambda: None


def _new_nonce() -> str:
    return uuid.uuid4().hex


async def run_with_signals(process: OracleProcess) -> int:
    """`OracleProcess.run`, ended by SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, process.stop)
    return await process.run()


class _LoopFront:
    """`tso.roles.Front`: carries each call from the lease's thread to the event loop, and waits until it is done."""

    def __init__(
        self,
        server: Server,
        settings: ServeSettings,
        *,
        recorder: CommitRecorder,
        table: CommitTable,
        loop: asyncio.AbstractEventLoop,
        announce: Callable[[str], None],
        standing: Standing,
        give_up: Callable[[], None],
    ) -> None:
        self._give_up = give_up
        self._server = server
        self._standing = standing
        self._recorder = recorder
        self._table = table
        self._settings = settings
        self._loop = loop
        self._announce = announce
        self._ran_ms = 0.0
        """When the event loop last ran what it was asked to by the lease's thread; on the monotonic clock."""
        self.advertised = ""
        self.note: Callable[[int], None] = lambda epoch: None
        """Has an epoch that is served now written down; waits for nothing."""
        self.succession: Callable[[], Succession | None] = lambda: None
        """How the tenure that begins now came about; ``None`` where that is not known, or nobody is to be succeeded."""

    def stand_by(self, primary: LeaseRecord | None, seen_ms: float | None) -> None:
        """See ``Front``. Our own address is not passed on: we are not primary, whatever the record still says."""
        answer = NotPrimary()
        if primary is not None and self.advertised not in primary.addresses:
            answer = NotPrimary(primary.addresses[0], primary.epoch)
            self._server.own.saw_lease(primary.lease_ms, seen_ms)
        self._on_loop(lambda: setattr(self._server, "not_primary", answer))

    def hindered(self, hindrance: str) -> None:
        """See ``Front``."""
        self._server.own.hindrance = hindrance

    def serve(self, tenure: Holding, ended: Callable[[str], None]) -> None:
        """See ``Front``."""
        self._standing.set("primary", tenure.epoch)
        came = self.succession()
        self._on_loop(lambda: self._serve(tenure, ended, came))
        self.note(tenure.epoch)
        self._announce(f"primary, epoch {tenure.epoch}")

    def stop_serving(self) -> None:
        """See ``Front``."""
        self._on_loop(self._stop_serving)
        self._standing.set("standby", 0)
        self._announce("standby")

    def progress(self) -> Progress:
        """See ``Front``. Waits for nothing: what is returned is as of the last call."""
        pipeline = self._server.pipeline
        if pipeline is None:
            return Progress()
        self._loop.call_soon_threadsafe(self._observe, pipeline)
        return Progress(pipeline.oracle.range.last, pipeline.durable, monotonic_ms() - self._ran_ms)

    def _observe(self, pipeline: Pipeline) -> None:
        self._ran_ms = monotonic_ms()
        pipeline.observe()

    def _serve(self, tenure: Holding, ended: Callable[[str], None], came: Succession | None) -> None:
        self._server.not_primary = NotPrimary()
        self._server.pipeline = Pipeline(
            tenure,
            self._recorder,
            self._table,
            self._settings.limits,
            moment=lambda: Moment(wall_ms(), monotonic_ms()),
            metering=self._server.metering,
            on_deposed=partial(self._deposed, ended),
            send_answers=self._server.send_answers,
            tries_min=len(parse_addresses(self._settings.thrift)) if self._settings.thrift else 1,
        )
        self._ran_ms = monotonic_ms()
        outage_ms = None if came is None else came.outage_ms(self._ran_ms)
        self._server.metering.took_over(None if outage_ms is None else outage_ms / 1000)

    def _deposed(self, ended: Callable[[str], None], reason: str) -> None:
        """The pipeline has stopped by itself, in whatever thread: the lease's thread has to come and take it away."""
        ended(reason)
        self._loop.call_soon_threadsafe(self._await_stop, self._server.pipeline, LEASES_TO_STOP_MAX)

    def _await_stop(self, pipeline: Pipeline | None, leases: int) -> None:
        """Give up where ``pipeline`` is still here after so many leases: the process would look like a standby for
        good, and never take over. Lease by lease, since of a time in which the whole process slept one step counts.
        """
        if pipeline is None or self._server.pipeline is not pipeline:
            return
        if not leases:
            log.error("epoch %d: the lease's thread hangs: this process ends at once", pipeline.oracle.epoch)
            self._give_up()
            return
        look_ms = max(self._settings.lease.lease_ms, STOP_LOOK_MS_MIN)
        self._loop.call_later(look_ms / 1000, self._await_stop, pipeline, leases - 1)

    def _stop_serving(self) -> None:
        pipeline, self._server.pipeline = self._server.pipeline, None
        if pipeline is not None:
            if pipeline.serving:  # nobody asked for the end, and the pipeline had not noticed: the lease is lost
                self._server.metering.depositions += 1
            pipeline.end()

    def _on_loop(self, call: Callable[[], Returned]) -> Returned:
        done: concurrent.futures.Future[Returned] = concurrent.futures.Future()

        def run() -> None:
            try:
                done.set_result(call())
            except Exception as error:
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return done.result()
