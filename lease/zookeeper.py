"""The coordinator on a real ZooKeeper, through kazoo.

What is kept away from the rest: kazoo's retries, which would send an ambiguous write once more (so nothing here goes
through ``KazooRetry`` but the connecting itself); its callbacks, which must not block (they set an event); its waits
without end (every answer is awaited for ``timeout_ms``). A request is sent only while connected: kazoo would keep it,
and send it after the next connect, when nobody waits for it any more. Its sessions, which a forked child must not end:
it opens one of its own. And its memory: it tells each server how much of ZooKeeper it has seen, and one that has less,
since ZooKeeper lost its data, hangs up on it for good. So no client lives long without a connection.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import math
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

from kazoo.client import KazooClient, KazooState, TransactionRequest
from kazoo.exceptions import (
    AuthFailedError,
    BadArgumentsError,
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    InvalidACLError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    QuotaExceededError,
    RolledBackError,
    RuntimeInconsistency,
    SessionClosedRequireSaslError,
    WriterNotClosedException,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KeeperState
from kazoo.retry import KazooRetry
from kazoo.security import ACL, ANYONE_ID_UNSAFE, AUTH_IDS, Permissions

from access import kerberos as access_kerberos
from access import service_tls
from access.kerberos import BadKerberos
from access.services import KERBEROS, ZOOKEEPER, Kerberos, TlsFiles
from access.tls import BadTls
from lease.coordinator import Applied, Check, CompareAndSet, Create, Delete, Node, Operation, Rejected, Unknown
from lease.credentials import ZooKeeperCredentials
from lease.ensemble import parse_ensemble
from lease.errors import CoordinatorRefused, CoordinatorUnavailable, InvalidLeaseSettings
from lease.kerberos import sasl_options
from lease.protection import Grant, Known
from lease.tls_handler import TlsHandler
from store.forking import leave_at_fork

RECONNECT_DELAY_MS_MAX = 500
START_MS_MAX = 1000
"""By when a client that was opened has begun to connect."""
SESSIONS_WITHOUT_CONNECTION_MAX = 2
"""After so many session timeouts without a connection the client is replaced: the session is over by then."""
READ_ROUNDS_MAX = 3
"""How often a read starts over because the node came or went between looking and watching."""

_DROPPED = "Connection dropped"
_NOT_KNOWN = "AUTH_FAILED"
_NO_KERBEROS = f"nobody has a session without Kerberos: where it asks for that, its address begins with {KERBEROS}"
_KAZOO_LOG = logging.getLogger("kazoo.client")
_NO_FILES = TlsFiles()
_NOBODY = Kerberos()
_ANY_VERSION = -1
_NO_VERSION = -2
"""What no node has; ZooKeeper looks at it once it has seen that a change is allowed."""
_REJECTIONS = (BadVersionError, NodeExistsError, NoNodeError, NotEmptyError)
_NOT_LET_IN = (AuthFailedError, ConnectionClosedError)
"""What kazoo says to one that was refused, and a moment later, when it has closed the connection over it."""
_REFUSALS = (NoAuthError, AuthFailedError, InvalidACLError, BadArgumentsError, QuotaExceededError)
# Not the user's digest, but "who has authenticated": ZooKeeper puts in what it knows this session by, by whatever
# algorithm it makes digests, so that nobody can lock himself out.
_OURS_TO_CHANGE = [ACL(Permissions.ALL, AUTH_IDS), ACL(Permissions.READ, ANYONE_ID_UNSAFE)]
_SIDE_EFFECTS = (RolledBackError, RuntimeInconsistency)
"""What the *other* operations of a failed multi are marked with."""


@dataclass(frozen=True, slots=True)
class _SetOnChange:
    """A watch function; equal for the same event, so that kazoo keeps one however often it is armed."""

    changed: threading.Event

    def __call__(self, _event: object) -> None:
        self.changed.set()


class _Link:
    """When one client was opened, whether it is connected, and since when it has not been. Each has its own: a client
    that is being stopped must not speak for the one that took its place.
    """

    def __init__(self, opened_s: float) -> None:
        self.connected = threading.Event()
        self.opened_s = self.lost_s = opened_s
        self.warned = ""
        """What kazoo has warned of last: it tells nobody else why it cannot connect."""
        self.untold = ""
        """What kazoo does not even warn of: why Kerberos came to nothing."""

    def trouble(self) -> str:
        """The same, to follow what is said of it."""
        return f"; last: {self.warned}" if self.warned else ""

    def tell(self, words: str) -> None:
        """Keep why Kerberos came to nothing."""
        self.untold = words

    def told(self, state: str) -> None:
        # Runs on kazoo's connection thread: must not block.
        if state == KazooState.CONNECTED:
            self.connected.set()
        elif self.connected.is_set():
            self.lost_s = time.monotonic()
            self.connected.clear()


class _Noting(logging.LoggerAdapter[logging.Logger]):
    """Kazoo's log, of which the link is told why a connection ended, or did not come about."""

    def __init__(self, log: logging.Logger, link: _Link) -> None:
        super().__init__(log)
        self._link = link

    def warning(self, msg: object, *args: object, **more: Any) -> None:
        if str(msg).startswith(_DROPPED):
            self._link.warned = str(msg) % args
        elif str(msg).startswith(_NOT_KNOWN):
            self._link.warned = self._link.untold or f"it refuses who this process is: {str(msg) % args}"
            self._link.untold = ""
        super().warning(msg, *args, **more)


class ZooKeeperCoordinator:
    """One ZooKeeper session, reconnected and renewed for as long as it is not closed. Also a context manager.

    A forked child has a session of its own, from its first call on.
    """

    def __init__(
        self,
        hosts: str,
        credentials: ZooKeeperCredentials | None = None,
        *,
        tls: TlsFiles = _NO_FILES,
        kerberos: Kerberos = _NOBODY,
        connect_timeout_ms: int = 10_000,
        session_timeout_ms: int = 6_000,
    ) -> None:
        """Open a session at ``hosts`` (``host:port``, several with commas), known by ``credentials``, and by Kerberos
        where the hosts have ``kerberos://`` before them.

        Where it is known, every node that it makes is its own to change, and everybody's to read. ``tls`` are the files
        for hosts with ``tls://`` before them, ``kerberos`` says who this is; what is not named there comes from the
        environment.

        Raises ``CoordinatorUnavailable`` when no server answered within ``connect_timeout_ms``, and
        ``InvalidLeaseSettings`` for hosts that cannot be meant, or files that cannot be used. ``session_timeout_ms``
        says how soon a dead process's member node goes; no lease hangs on it.
        """
        self._ensemble = parse_ensemble(hosts)
        self._hosts = hosts
        try:
            self._tls = service_tls.checked(tls, ZOOKEEPER, spoken=self._ensemble.tls)
            self._kerberos = access_kerberos.checked(kerberos, ZOOKEEPER, spoken=self._ensemble.kerberos)
        except (BadTls, BadKerberos) as error:
            raise InvalidLeaseSettings(f"ZooKeeper at {hosts}: {error}") from error
        self._credentials = credentials
        self._session_timeout_ms = session_timeout_ms
        self._changing = threading.Lock()
        self._closed = False
        self._leaving: tuple[KazooClient, threading.Thread] | None = None
        self._client, self._link = self._unopened(time.monotonic())
        self._client.start_async()
        leave_at_fork(self)
        until_s = time.monotonic() + connect_timeout_ms / 1000
        if not self._link.connected.wait(connect_timeout_ms / 1000):
            trouble = self._link.trouble()
            self.close()
            raise CoordinatorUnavailable(
                f"ZooKeeper at {hosts} did not answer within {connect_timeout_ms} ms:"
                f" is it running, and is the address right?{trouble}"
            )
        if self._ensemble.kerberos:  # kazoo calls a session connected before the two have agreed on who this is
            try:
                self._be_answered(1000 * (until_s - time.monotonic()))
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def read(
        self, path: str, *, timeout_ms: float, synced: bool = False, changed: threading.Event | None = None
    ) -> Node | None:
        """See ``Coordinator.read``."""
        with self._deadline(timeout_ms, f"reading {path}") as deadline:
            self._await_connection(deadline)
            # The server answers in order, so the read need not wait for this answer: a slow ZooKeeper is read in as
            # many trips as it is written. Else a lease could be kept where none could be taken over.
            caught_up = self._client.sync_async(path) if synced else None
            node = self._read(path, deadline, None if changed is None else _SetOnChange(changed))
            if caught_up is not None:
                deadline.answer(caught_up)
            return node

    def children(self, path: str, *, timeout_ms: float) -> list[str]:
        """See ``Coordinator.children``."""
        with self._deadline(timeout_ms, f"listing {path}") as deadline:
            self._await_connection(deadline)
            try:
                return sorted(deadline.answer(self._client.get_children_async(path)))
            except NoNodeError:
                return []

    def commit(self, operations: Sequence[Operation], *, timeout_ms: float) -> CompareAndSet:
        """See ``Coordinator.commit``."""
        try:
            with self._deadline(timeout_ms, "writing") as deadline:
                self._await_connection(deadline)
                results = deadline.answer(self._multi(operations).commit_async())
        except CoordinatorUnavailable as error:
            return Unknown(str(error))
        return _outcome(results, operations)

    @property
    def known(self) -> Known | None:
        """See ``Guarded.known``."""
        ways = []
        if self._credentials is not None:
            ways.append(Known(f"user {self._credentials.user} with this password", "user or password are wrong"))
        if self._ensemble.kerberos:
            who = self._kerberos.principal or "whom the tickets or the keytab name"
            ways.append(Known(f"{who} by Kerberos", "the principal is not that of its other processes"))
        words, wrong = (" and ".join(way.words for way in ways), ", or ".join(way.wrong for way in ways))
        return Known(words, wrong) if ways else None

    def grants(self, path: str, *, timeout_ms: float) -> list[Grant] | None:
        """See ``Guarded.grants``."""
        with self._deadline(timeout_ms, f"reading what {path} grants") as deadline:
            self._await_connection(deadline)
            try:
                entries, _ = deadline.answer(self._client.get_acls_async(path))
            except NoNodeError:
                return None
            return [_grant(entry) for entry in entries]

    def may_grant(self, path: str, *, timeout_ms: float) -> bool:
        """See ``Guarded.may_grant``. What it is asked by changes nothing, since no node has that version."""
        with self._deadline(timeout_ms, f"asking who may change {path}") as deadline:
            self._await_connection(deadline)
            try:
                deadline.answer(self._client.set_acls_async(path, _OURS_TO_CHANGE, _NO_VERSION))
            except BadVersionError:
                return True
            except (NoAuthError, NoNodeError):
                return False
            raise CoordinatorUnavailable(f"ZooKeeper has taken version {_NO_VERSION} for that of {path}")

    def protect(self, path: str, *, timeout_ms: float) -> None:
        """See ``Guarded.protect``."""
        with self._deadline(timeout_ms, f"protecting {path}") as deadline:
            self._await_connection(deadline)
            with contextlib.suppress(NoNodeError):
                deadline.answer(self._client.set_acls_async(path, _OURS_TO_CHANGE))

    def session_id(self) -> int | None:
        """See ``Coordinator.session_id``."""
        client_id = self._client.client_id
        return None if client_id is None else cast("int | None", client_id[0])

    def close(self) -> None:
        """See ``Coordinator.close``."""
        with self._changing:
            was_closed, self._closed = self._closed, True
        if not was_closed:
            _stop(self._client)

    def leave_to_parent(self) -> None:
        """See ``Leaving``. The parent's session goes on, and the next call opens another."""
        self._changing = threading.Lock()
        for client in (self._client, *(self._leaving or ())[:1]):
            _abandon(client)
        self._leaving = None
        self._client, self._link = self._unopened(-math.inf)

    def _unopened(self, opened_s: float) -> tuple[KazooClient, _Link]:
        retry = KazooRetry(max_tries=-1, delay=0.05, backoff=2, max_delay=RECONNECT_DELAY_MS_MAX / 1000)
        known = {"auth_data": [("digest", self._credentials.digest)]} if self._credentials else {}
        link = _Link(opened_s)
        client = KazooClient(
            hosts=self._ensemble.hosts,
            logger=_Noting(_KAZOO_LOG, link),
            timeout=self._session_timeout_ms / 1000,
            connection_retry=retry,
            default_acl=_OURS_TO_CHANGE if self.known else None,
            sasl_options=sasl_options(self._kerberos, self._session_timeout_ms, link.tell)
            if self._ensemble.kerberos
            else None,
            # Without TLS kazoo makes a handler of its own.
            **({"use_ssl": True, "handler": TlsHandler(self._tls)} if self._ensemble.tls else {}),
            **known,
        )
        client.add_listener(link.told)
        return client, link

    def _deadline(self, timeout_ms: float, doing: str) -> _Deadline:
        return _Deadline(
            timeout_ms, f"{doing}, at ZooKeeper {self._hosts}", lambda: self._link.trouble(), self._ensemble.kerberos
        )

    def _be_answered(self, timeout_ms: float) -> None:
        with self._deadline(timeout_ms, "being known") as deadline:
            while True:
                # Asked first: who was refused since is told so, and would wait in vain to be connected.
                with contextlib.suppress(ConnectionLoss):  # kazoo connects again
                    deadline.answer(self._client.sync_async("/"))
                    return
                self._await_connection(deadline)

    def _await_connection(self, deadline: _Deadline) -> None:
        with self._changing:
            if self._closed:
                raise CoordinatorUnavailable("this ZooKeeper session is closed")
            if self._is_dead():
                self._replace()
            link = self._link
        if not link.connected.wait(deadline.remaining_s()):
            raise CoordinatorUnavailable(f"not connected to ZooKeeper at {self._hosts}{link.trouble()}")

    def _is_dead(self) -> bool:
        """Whether this client has to be replaced, which waits until the one before it has ended.

        Kazoo's connection thread gives up after an answer that it does not understand; in a forked child it was never
        started. A client that was just opened is in the same state for a moment, hence the time to start. Or it tries
        on, and no server takes it.
        """
        link = self._link
        if link.connected.is_set() or (self._leaving is not None and self._leaving[1].is_alive()):
            return False
        now_s = time.monotonic()
        if self._client.client_state in (KeeperState.CLOSED, KeeperState.AUTH_FAILED):
            return now_s > link.opened_s + START_MS_MAX / 1000
        return now_s > link.lost_s + SESSIONS_WITHOUT_CONNECTION_MAX * self._session_timeout_ms / 1000

    def _replace(self) -> None:
        """Go on with a client that has seen nothing. The old one is stopped beside: that may take seconds."""
        old = self._client
        stopping = threading.Thread(target=_stop, args=(old,), name="zookeeper-stop", daemon=True)
        stopping.start()
        self._leaving = old, stopping
        self._client, self._link = self._unopened(time.monotonic())
        self._client.start_async()

    def _multi(self, operations: Sequence[Operation]) -> TransactionRequest:
        transaction = self._client.transaction()
        for operation in operations:
            _add(transaction, operation)
        return transaction

    def _read(self, path: str, deadline: _Deadline, watch: Callable[[object], None] | None) -> Node | None:
        for _ in range(READ_ROUNDS_MAX):
            try:
                data, stat = deadline.answer(self._client.get_async(path, watch))
                return Node(data, stat.version)
            except NoNodeError:
                if watch is None or deadline.answer(self._client.exists_async(path, watch)) is None:
                    return None
        raise CoordinatorUnavailable(f"{path} came and went {READ_ROUNDS_MAX} times during one read")


class _Deadline:
    """The limit of one call, shared by its requests; maps every kazoo error but "no such node" on the way out."""

    def __init__(self, timeout_ms: float, doing: str, trouble: Callable[[], str], by_kerberos: bool) -> None:
        self._end_s = time.monotonic() + timeout_ms / 1000
        self._doing = doing
        self._trouble = trouble
        self._by_kerberos = by_kerberos

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, _NOT_LET_IN) and self._by_kerberos:  # which may have tickets again
            raise CoordinatorUnavailable(f"{self._doing}: not known{self._trouble()}") from error
        if isinstance(error, SessionClosedRequireSaslError):
            raise CoordinatorUnavailable(f"{self._doing}: {_NO_KERBEROS}") from error
        if isinstance(error, _REFUSALS):
            raise CoordinatorRefused(
                f"{self._doing}: refused with {error!r}; check its permissions and quota"
            ) from error
        if isinstance(error, KazooTimeoutError):
            raise CoordinatorUnavailable(f"{self._doing}: no answer in time") from error
        if isinstance(error, (KazooException, RuntimeError, OSError, struct.error)):
            raise CoordinatorUnavailable(f"{self._doing}: {error!r}") from error

    def remaining_s(self) -> float:
        return max(0.0, self._end_s - time.monotonic())

    def answer(self, result: Any) -> Any:
        """Wait for an asynchronous result of kazoo."""
        return result.get(timeout=self.remaining_s())


def _grant(entry: ACL) -> Grant:
    change = bool(entry.perms & ~Permissions.READ)
    everything = entry.perms & Permissions.ALL == Permissions.ALL
    return Grant(entry.id.scheme, entry.id.id, change, everything)


def _stop(client: KazooClient) -> None:
    # Raised when the connection thread hangs in a connect; it is a daemon and ends when that does.
    with contextlib.suppress(WriterNotClosedException):
        client.stop()
        client.close()


def _abandon(client: KazooClient) -> None:
    """In a forked child, which has none of its threads: close its descriptors, and end nothing of the parent's."""
    connection = client._connection
    for shared in (connection._socket, connection._read_sock, connection._write_sock):
        if shared is not None:
            shared.close()
    atexit.unregister(client.handler.stop)  # it would wait for locks that those threads may have held


def _add(transaction: TransactionRequest, operation: Operation) -> None:
    if isinstance(operation, Create):
        transaction.create(operation.path, operation.data, ephemeral=operation.ephemeral)
    elif isinstance(operation, Delete):
        transaction.delete(operation.path)
    elif isinstance(operation, Check):
        transaction.check(operation.path, operation.version)
    else:
        version = _ANY_VERSION if operation.version is None else operation.version
        transaction.set_data(operation.path, operation.data, version)


def _outcome(results: Sequence[object], operations: Sequence[Operation]) -> CompareAndSet:
    """What a multi's list of results means: it is atomic, so one real failure is the failure of all."""
    failures = [result for result in results if isinstance(result, Exception)]
    causes = [failure for failure in failures if not isinstance(failure, _SIDE_EFFECTS)]
    if not failures:
        return Applied()
    if causes and all(isinstance(cause, _REJECTIONS) for cause in causes):
        return Rejected()
    if any(isinstance(cause, _REFUSALS) for cause in causes):
        paths = [one.path for one, result in zip(operations, results, strict=False) if isinstance(result, _REFUSALS)]
        raise CoordinatorRefused(
            f"ZooKeeper refuses to have {', '.join(paths)} written with {causes!r}; check permissions, its parent's "
            "where it is to be made, and quota"
        )
    return Unknown(f"ZooKeeper answered {failures!r}")
