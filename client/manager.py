"""The library's front door: one manager a process and installation, shared by all its threads."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, TypeVar

import tenacity

from client.adoption.adopting import Adopted, adopt
from client.bulk_writes.manifest import Attempt, Manifest
from client.bulk_writes.writing import AttemptWriter, await_last_looks, require_not_ending, require_open
from client.catalog.catalog import Catalog
from client.catalog.entry import CatalogEntry, ConflictLevel, family_names
from client.catalog.shadow_family import ShadowFamilyStore
from client.connection.oracle import OracleClient
from client.connection.primary import Directory, SoloDirectory, ZooKeeperDirectory
from client.connection.services import store_of
from client.errors import InvalidRequest, InvalidSettings
from client.green_threads import require_threads
from client.handles import SnapshotHandle, StaysInItsProcess, TransactionHandle
from client.metrics import ClientMetrics
from client.settings import ClientSettings
from client.snapshots.changes import ChangesReader
from client.snapshots.moments import Moment, parse_moment, validate_name
from client.snapshots.named import NamedSnapshots
from client.snapshots.past import Past, moment_of
from client.snapshots.record import NamedSnapshot
from client.snapshots.resolver import OutcomeCache, Resolver
from client.snapshots.snapshot import Snapshot
from client.snapshots.visibility import View
from client.transactions.background_shadows import CLOSE_SECONDS_MAX, BackgroundShadows
from client.transactions.commit import Services, finish_bulk_write
from client.transactions.fences import place_fence
from client.transactions.guards import Guards
from client.transactions.heartbeat import Heartbeats
from client.transactions.helper_threads import HelperThreads
from client.transactions.hooks import TransactionHooks
from client.transactions.reruns import retrying_rules
from client.transactions.revalidation import Revalidator
from client.transactions.transaction import Transaction
from client.transactions.write_buffer import WriteBuffer
from commit_table import Aborted, CommitTable, Committed, Outcome, system_table, table_name
from commit_table.layout import SALTS
from lease.clocks import wall_ms
from lease.solo import SoloRegistry
from store import CellStore

Result = TypeVar("Result")

HELPERS_MAX: Final = 8
"""Threads, of all transactions of a manager, by which one writes to several tables at once; where all are busy it
writes to one after the other. Each has one request to the store under way."""
HELPER_THREAD: Final = "pythia-helper"


class TransactionManager(StaysInItsProcess):
    """Begins transactions and snapshots on one installation. Thread-safe; a context manager that closes itself.

    ``store`` and ``directory`` are what it runs on; ``connect`` builds them from settings. ``hooks`` are told of the
    begin, the steps and the end of each transaction; ``metrics`` count them, and may be several managers'. A forked
    child may use it, and close it, as its own; what was begun before the fork is the parent's alone. Raises
    ``InvalidSettings`` for hooks or metrics that are none.
    """

    what_travels = "send its settings, and connect with them there"

    def __init__(
        self,
        settings: ClientSettings,
        store: CellStore,
        directory: Directory,
        *,
        hooks: TransactionHooks | None = None,
        metrics: ClientMetrics | None = None,
        close: Callable[[], None] | None = None,
    ) -> None:
        self.settings = settings
        self.metrics = ClientMetrics.of(metrics)
        self.meter = self.metrics.meter(settings.root)
        self.commit_table = CommitTable(store, table_name(settings.root))
        self.catalog = Catalog(store, settings.root, data_of_oracles=lambda: directory.data)
        self.store: CellStore = ShadowFamilyStore(store, self.catalog.families_apart_from_shadows)
        self.manifest = Manifest(store, settings.root)
        self.oracle = OracleClient(directory, settings, self.metrics)
        self.heartbeats = Heartbeats(self.oracle, settings.heartbeat_interval_ms)
        self.meter.watch(self.heartbeats)
        self._past = Past(directory, self.oracle, settings.deadline_ms)
        self._named = NamedSnapshots(store, self.catalog, settings.root)
        self._close = close
        cache = OutcomeCache(settings.outcome_cache_entries_max)
        being_written: set[int] = set()
        resolver = Resolver(
            self.store,
            self.commit_table,
            cache,
            heal=settings.heal,
            being_written=being_written,
            looks_up=self.meter.looked_up,
        )
        self._background = (
            BackgroundShadows(resolver.write_shadows, being_written, settings.shadow_writers_max)
            if settings.shadow_cells == "in_background"
            else None
        )
        guards = Guards(self.store, resolver, self.catalog)
        self._services = Services(
            store=self.store,
            commit_table=self.commit_table,
            catalog=self.catalog,
            manifest=self.manifest,
            oracle=self.oracle,
            guards=guards,
            resolver=resolver,
            revalidator=Revalidator(self.store, self.commit_table, guards, self.oracle),
            cache=cache,
            helpers=HelperThreads(HELPER_THREAD, HELPERS_MAX),
            background=self._background,
            hooks=TransactionHooks.of(hooks),
            meter=self.meter,
            deadline_ms=settings.deadline_ms,
            shadow_writers_max=settings.shadow_writers_max,
            bulk_shadow_cells=settings.bulk_shadow_cells,
        )

    @classmethod
    def connect(
        cls,
        settings: ClientSettings,
        *,
        hooks: TransactionHooks | None = None,
        metrics: ClientMetrics | None = None,
    ) -> TransactionManager:
        """A manager on the real services. Connections are opened when they are first needed.

        Raises ``InvalidSettings`` for what are none, and ``InvalidRequest`` under gevent's or eventlet's patches.
        """
        require_threads()
        if not isinstance(settings, ClientSettings):
            raise InvalidSettings(f"connect takes ClientSettings(zookeeper=…, thrift=…), not {settings!r}")
        store = store_of(settings)
        if settings.oracle:
            registry = SoloRegistry(store, system_table(settings.root, "epoch"))
            solo = SoloDirectory(settings.oracle, registry)
            return cls(settings, store, solo, hooks=hooks, metrics=metrics, close=store.close)
        directory = ZooKeeperDirectory(settings)

        def close() -> None:
            directory.close()
            store.close()

        return cls(settings, store, directory, hooks=hooks, metrics=metrics, close=close)

    def close(self) -> None:
        """Give back every connection. Open transactions can neither read nor commit afterwards.

        Shadow cells that are still to be written in the background are waited for, ``CLOSE_SECONDS_MAX`` at most.
        """
        if self._background is not None:
            self._background.close(min(self.settings.deadline_ms / 1000, CLOSE_SECONDS_MAX))
        self.heartbeats.close()
        self.oracle.close()
        if self._close is not None:
            self._close()

    def __enter__(self) -> TransactionManager:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.settings.root} at {self.settings.zookeeper or self.settings.oracle}>"

    def create_own_tables(self, *, commit_table_regions: int = 1) -> tuple[str, ...]:
        """Make those of Pythia's own tables that are missing; returns their names.

        ``commit_table_regions``: of a commit table that is made, as many as servers are to share what it costs, 256 at
        most; its keys are spread evenly over them. More than one needs ``thrift2`` of the settings.

        Each is otherwise made by whoever needs it first. Where HBase lets few make tables, one of them calls this once,
        and nobody after him needs that right. Needs no oracle; repeating it is harmless. Raises ``InvalidRequest``
        where the gateway leads to another HBase than the oracles', or for another number of regions, ``UpgradeNeeded``,
        ``StoreError`` for what HBase refuses, ``StoreUnavailable``.
        """
        if not 1 <= commit_table_regions <= SALTS:
            raise InvalidRequest(f"the commit table is made with 1 to {SALTS} regions, not {commit_table_regions}")
        missing = self.catalog.tables_of_nobody - set(self.store.table_names())
        self.commit_table.create(commit_table_regions)
        self.catalog.create()
        self.manifest.create()
        self._named.create_table()
        return tuple(sorted(missing))

    def create_table(
        self,
        table: str,
        families: Sequence[str],
        *,
        conflict_level: ConflictLevel = "cell",
        description: bytes = b"",
        if_missing: bool = False,
        split_keys: Sequence[bytes] = (),
    ) -> None:
        """Make a table that keeps the versions which snapshots need. Not part of any transaction.

        ``split_keys``: the first row keys of its regions, but that of the first one, in any order: as many servers can
        take a bulk write from its first row on as it has regions. HBase splits a table of one region as it grows. It
        needs ``thrift2`` of the settings, else raises ``CannotPreSplit``; a table that is there already stays as it is.
        ``conflict_level``: whether transactions conflict on the same ``"cell"`` or already on the same ``"row"``; for
        all writers, and for good. ``if_missing``: leave a table as it is that exists with this level, these families
        and this description, whoever made it. Raises ``InvalidRequest`` where the table exists otherwise, or a name
        cannot be.
        """
        entry = CatalogEntry(conflict_level, family_names(families), description)
        self.catalog.create_table(table, entry, if_missing=if_missing, split_keys=split_keys)

    def adopt_table(
        self,
        table: str,
        *,
        conflict_level: ConflictLevel = "cell",
        description: bytes = b"",
        progress: Callable[[int], None] = lambda rows: None,
    ) -> Adopted:
        """Take over a table that programs without transactions have written, where it is. No cell is changed.

        Every snapshot shows then what lies in it as having been there from the beginning: the newest cell of each
        column, whatever its value. From the call on it may be written in transactions only. What somebody goes on
        putting without them is seen by nobody; what he deletes is gone for all, older snapshots too.

        Each cell is read once; ``progress`` is told how many rows have been. Repeating it is harmless.
        ``conflict_level``, ``description``: as in ``create_table``. Raises ``InvalidRequest`` where there is no such
        table, it is this installation's already or agreed on otherwise, its families do not keep all versions for
        ever, or a cell could be taken for a transaction's: by its timestamp, 2**52 or above, or by a qualifier that
        begins with a zero byte; ``NoPrimary``, ``StoreUnavailable``. The idea is Tephra's, which reads data from before
        its first transaction by their timestamps, too.
        """
        now = self.oracle.begin().first_start_timestamp
        return adopt(self.store, self.catalog, table, conflict_level, description, progress, now=now)

    def drop_table(self, table: str) -> None:
        """Remove a table with all its data. Not part of any transaction.

        It is fenced (``fence``) before and after that: whoever may have written it and has not committed by then gets
        ``TableFenced``, although a table may have been made anew under its name meanwhile; whoever reads it as of
        before the drop gets ``InvalidRequest``. ``create_table`` waits until every process has learned of the drop,
        11 s at most. Raises ``InvalidRequest`` where there is none, and for one with data that is not this
        installation's; drops nothing where the first fence fails; repeating a drop that failed is harmless.
        """
        if self.catalog.has_entry(table):
            self._place_fence(table)
        self.catalog.drop_table(table, lambda: self._place_fence(table))

    def fence(self, table: str) -> Snapshot:
        """Part the past of a table from its future: a barrier, for a change of its schema or a copy of it.

        The fence has a commit timestamp, and the snapshot that is returned is at it. Once this returns:

        * a transaction that began before this was called, and wrote the table, has committed below the fence, so that
          the snapshot shows it, or it never commits: its ``commit``, under way or yet to come, raises ``TableFenced``
          (or another reason for which it did not commit), also after a failover. Bulk and conflict-free writes count;
        * one that begins from now on has the fence below its snapshot, and is not touched by it. What it commits to the
          table comes after the snapshot;
        * one that began in between belongs to the former where its snapshot is below the fence, else to the latter.

        So the table at the snapshot is settled, and whatever comes after was written by who began after the fence.
        Transactions that only read the table, or wrote others, are not touched. ``NoPrimary``, ``OutcomeUnknown``: the
        fence may stand or not, fence again. ``InvalidRequest``: there is no such table. (After the fences of Omid.)
        """
        fenced_at = self._place_fence(table)
        self._past.settled(fenced_at)
        kept = self.oracle.begin()  # by this id the oracle knows that the snapshot is in use
        return self.resume_snapshot(
            SnapshotHandle(fenced_at, kept.epoch, self.settings, begun=kept.first_start_timestamp)
        )

    def _place_fence(self, table: str) -> int:
        self.catalog.fresh_entry(table)
        begun = self.oracle.begin()
        handle = TransactionHandle(begun.first_start_timestamp, begun.snapshot, begun.epoch, self.settings)
        return place_fence(self._services, handle, table)

    def transaction(self, *, read_only: bool = False) -> Transaction:
        """Begin a transaction. Raises ``NoPrimary``, ``NoThreadFree``, and what the hooks raise."""
        self._services.hooks.before_begin()
        with self.meter.beginning():
            begun = self.oracle.begin()
        handle = TransactionHandle(begun.first_start_timestamp, begun.snapshot, begun.epoch, self.settings)
        transaction = self._transaction(handle, shared=False, read_only=read_only)
        self.heartbeats.watch(transaction)
        transaction.tell_begun()
        return transaction

    def resume(self, handle: TransactionHandle) -> Transaction:
        """A transaction that another process began: reads as it does, writes into it, may end it.

        What the other process has only buffered is not seen here. One process ends the transaction, not several.
        """
        self._check_ours(handle)
        transaction = self._transaction(handle, shared=True, read_only=False)
        self.heartbeats.watch(transaction)
        return transaction

    def snapshot(self, at: Moment | None = None) -> Snapshot:
        """Everything committed by now, or by then: ``at`` is a timestamp of Pythia's, a time with its zone, a text that
        means either, or a snapshot's name.

        A past one needs no oracle, but ZooKeeper; up to where the past is settled it works with every oracle down. One
        with a name (``create_snapshot``) needs HBase alone. Raises ``NoPrimary``, and ``InvalidRequest`` for a time
        that has not come, or a name that there is not.
        """
        return self.resume_snapshot(self._handle_at(at))

    def create_snapshot(self, name: str, at: Moment | None = None) -> NamedSnapshot:
        """Give what is committed by now, or was by then, a name: it can be read until ``drop_snapshot``.

        No vacuum drops what it shows, whatever is running now; ``drop_table`` does. Any process of the installation
        reads it, by ``snapshot(at=name)``. ``name``: a letter, then letters, digits, dots, underscores and hyphens.

        Raises ``InvalidRequest`` where the name is taken or the moment was vacuumed; of several that create a name at a
        time one succeeds at most. ``NoPrimary``, ``StoreUnavailable``: repeat it; the name may stand unfinished until
        then, cannot be read, and holds back the vacuum.
        """
        validate_name(name)
        handle = self._handle_at(at)
        return self._named.create(name, handle.timestamp, handle.epoch)

    def move_snapshot(self, name: str, at: Moment | None = None) -> NamedSnapshot:
        """Have a name stand for what is committed by now, or was by then: a later moment than it stood for.

        The vacuum is held back by the one moment or by the other, without a gap. For who follows what changes, and
        keeps the moment that was got to. Raises ``InvalidRequest`` where there is no such name, or the moment is
        earlier, or somebody else has moved it meanwhile; ``NoPrimary``, ``StoreUnavailable``: repeat it.
        """
        validate_name(name)
        handle = self._handle_at(at)
        return self._named.move(name, handle.timestamp, handle.epoch)

    def snapshots(self) -> list[NamedSnapshot]:
        """The snapshots that have a name, by name; also those whose creation was not finished. Needs no oracle."""
        return self._named.all()

    def drop_snapshot(self, name: str) -> None:
        """Give a snapshot's name up, so that it holds back no vacuum any more. Needs no oracle.

        What it shows may be read on, by who holds it, until it is vacuumed. Raises ``InvalidRequest`` where there is
        none of that name, ``StoreUnavailable``.
        """
        self._named.drop(name)

    def resume_snapshot(self, handle: SnapshotHandle) -> Snapshot:
        """A snapshot that another process took. Needs no oracle."""
        self._check_ours(handle, SnapshotHandle)
        snapshot = Snapshot(handle, self._reader(View(handle.timestamp, handle.epoch)))
        self.heartbeats.watch(snapshot)
        return snapshot

    def run(self, function: Callable[[Transaction], Result], *, attempts_max: int = 10) -> Result:
        """Call ``function`` in a transaction and commit; after a conflict, call it again in a *new* transaction.

        Nothing is ever replayed: the function reads the new snapshot and decides anew, so it must have no effects
        outside its transaction. Returns what it returned in the attempt that committed. Raises the last
        ``TransactionAborted`` after ``attempts_max`` attempts, every other error at once, and ``InvalidRequest``, where
        nothing is committed, for a function that has ``yield`` in it or gives a coroutine.
        """
        if inspect.isgeneratorfunction(function):  # nothing of its body would have run by the commit
            raise InvalidRequest("run takes a function that returns: one with yield in it would commit nothing")
        retrying = tenacity.Retrying(**retrying_rules(attempts_max, self.meter.runs_again))
        result: Result = retrying(self._run_once, function)
        return result

    def outcome(self, start_timestamp: int) -> Outcome:
        """What the commit table says of a transaction. Needs no oracle; ``Undecided`` may change later."""
        _check_timestamp(start_timestamp)
        self.catalog.require_level()  # its rows do not say in which format they are
        return self.commit_table.outcome(start_timestamp)

    def abort(self, start_timestamp: int) -> Committed | Aborted:
        """Make sure that a transaction never commits, or learn that it did; whoever runs it. Raises ``NoPrimary``."""
        _check_timestamp(start_timestamp)
        return self.oracle.abort(start_timestamp)

    def attempt_writer(
        self, handle: TransactionHandle, table: str, job: str, *, partition: int, attempt: int
    ) -> AttemptWriter:
        """Where one attempt of one task of a bulk write puts its rows; see ``client.bulk_writes.writing``."""
        self._check_ours(handle)
        self.catalog.entry(table)  # a table that is none is refused before the task has read its input
        writer = AttemptWriter(
            self.store,
            self.commit_table,
            self.catalog,
            self.manifest,
            handle,
            table,
            job,
            partition=partition,
            attempt=attempt,
        )
        self.heartbeats.watch(writer)
        return writer

    def open_job(self, handle: TransactionHandle) -> str:
        """Announce a bulk write: from now on the transaction commits only if ``seal_job`` was called for it.

        Returns the job's name. Raises ``InvalidRequest`` or ``TransactionAborted`` where the transaction has ended, or
        is being ended.
        """
        self._check_ours(handle)
        # Asked before as well: a job that is announced in vain keeps whoever is ending the transaction from it.
        require_not_ending(self.commit_table, self.manifest, handle.start_timestamp)
        job = uuid.uuid4().hex
        self.manifest.open(handle.start_timestamp, job)
        require_not_ending(self.commit_table, self.manifest, handle.start_timestamp)
        return job

    def seal_job(self, handle: TransactionHandle, job: str, winners: Sequence[Attempt]) -> None:
        """Say that a bulk write ended well; ``winners``: the (partition, attempt) pairs whose rows count.

        Once it returns no other attempt sends anything, but for what it has sent: it waits for that where there is one.
        """
        require_open(self.commit_table, handle.start_timestamp)
        self.manifest.seal(handle.start_timestamp, job, winners)
        # Not before the seal: who records rows after this sees it as he looks for what became of the transaction.
        if self.manifest.is_written_besides(handle.start_timestamp, job, winners):
            await_last_looks()

    def finish_bulk_writes(self) -> int:
        """Write the shadow cells that ended bulk writes still lack; how many transactions these were.

        Those that ``bulk_shadow_cells="deferred"`` left behind, and those of processes that died after their commit;
        not those that a transaction with a lasting record does without. Raises ``StoreUnavailable`` and
        ``UpgradeNeeded``; what was done by then is done.
        """
        finished = 0
        self.catalog.require_level()  # before a manifest is read, or what it says is taken for undecided
        for start_timestamp in self.manifest.transactions():
            outcome = self.commit_table.outcome(start_timestamp)
            if isinstance(outcome, Committed) and outcome.is_lasting:
                self.manifest.forget(start_timestamp)
            elif isinstance(outcome, Committed):
                finish_bulk_write(self._services, start_timestamp, outcome.commit_timestamp)
                finished += 1
        return finished

    def _handle_at(self, at: Moment | None) -> SnapshotHandle:
        if at is None:
            begun = self.oracle.begin()
            return SnapshotHandle(begun.snapshot, begun.epoch, self.settings, begun.first_start_timestamp)
        at = parse_moment(at) if isinstance(at, str) else at
        if isinstance(at, str):
            named = self._named.find(at)
            return SnapshotHandle(named.timestamp, named.epoch, self.settings)
        moment = moment_of(at)
        settled = self._past.settled(moment)
        if not isinstance(at, int):
            self._past.compare_clock(wall_ms())
        return SnapshotHandle(moment, settled.epoch, self.settings)

    def _check_ours(
        self,
        handle: TransactionHandle | SnapshotHandle,
        kind: type[TransactionHandle | SnapshotHandle] = TransactionHandle,
    ) -> None:
        if not isinstance(handle, kind):
            raise InvalidRequest(f"a {kind.__name__} is needed, as handle() or from_json() gives it, not {handle!r}")
        theirs, ours = handle.settings, self.settings
        if (theirs.root, theirs.zookeeper, theirs.oracle) != (ours.root, ours.zookeeper, ours.oracle):
            raise InvalidRequest(
                f"the handle belongs to {theirs.root} at {theirs.zookeeper or theirs.oracle}, this manager to "
                f"{ours.root} at {ours.zookeeper or ours.oracle}: connect with the handle's settings"
            )

    def _run_once(self, function: Callable[[Transaction], Result]) -> Result:
        with self.transaction() as transaction:
            result = function(transaction)
            if inspect.iscoroutine(result):  # nothing of it has run: it would commit nothing, and say so to nobody
                result.close()
                raise InvalidRequest(
                    "run takes a function that blocks: for async def there is AsyncTransactionManager.run"
                )
            return result

    def _transaction(self, handle: TransactionHandle, *, shared: bool, read_only: bool) -> Transaction:
        snapshot, epoch = handle.snapshot_timestamp, handle.epoch
        return Transaction(
            self._services,
            handle,
            self._reader(View(snapshot, epoch, own=handle.start_timestamp)),
            self._reader(View(snapshot, epoch)),
            WriteBuffer(self.settings.transaction_bytes_max),
            shared=shared,
            read_only=read_only,
        )

    def _reader(self, view: View) -> ChangesReader:
        return ChangesReader(
            self.store, self._services.resolver, view, self.catalog, shown_from=self.catalog.shown_from
        )


def _check_timestamp(start_timestamp: int) -> None:
    if not isinstance(start_timestamp, int) or not 0 < start_timestamp < 2**63 - 1:
        raise InvalidRequest(
            f"a transaction's id is its start timestamp, a whole number below 2**63, not {start_timestamp!r}"
        )
