"""`pythia tso …` and `pythia ts …`: run an oracle, see how the oracles are, read a timestamp.

Each option can come from the environment variable that its help names.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
from collections.abc import Coroutine, Iterator
from dataclasses import asdict, fields
from typing import Any

import click
import uvloop
from rich.console import Console
from rich.table import Table

from commit_table.timestamps import counter_of, milliseconds_of, wall_time_of
from lease import LeaseError
from lease.paths import DEFAULT_ROOT
from lease.zookeeper import ZooKeeperCoordinator
from store.hbase import HBaseCellStore, PoolSettings
from store.hbase.putter import GatewayPutter
from tso.fleet import CannotHandOver, NotAlone, Seen, hand_over, look, require_alone
from tso.process import OracleProcess, run_with_signals
from tso.rest_process import RestProcess, address_of, listen
from tso.settings import InvalidSettings, Limits, ServeSettings, lease_settings, parse_listen
from tso.volatile import volatile_process
from wire import StatusReply

_LOG_FORMAT = "%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"
_STORE_UNAVAILABLE_AFTER_MS = 1_000
_STORE_REQUEST_TIMEOUT_MS = 3_000
"""The store gives up soon: who repeats a write here has to look at the lease between two tries."""

_zookeeper_option = click.option(
    "--zookeeper",
    required=True,
    metavar="HOST:PORT[,…]",
    envvar="PYTHIA_ZOOKEEPER",
    show_envvar=True,
    help="ZooKeeper, where lease and members are kept.",
)
_root_option = click.option(
    "--root",
    default=DEFAULT_ROOT,
    show_default=True,
    envvar="PYTHIA_ROOT",
    show_envvar=True,
    help="Znode of this installation; its tables in HBase are named after it.",
)


@click.group()
def tso() -> None:
    """The transaction status oracle: serve, status, handover."""


def _default_name() -> str:
    host = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in socket.gethostname())
    return f"{host[:80]}-{os.getpid()}"


def _limits_help() -> str:
    shown = ", ".join(f"{limit.name}={limit.default}" for limit in fields(Limits))
    return f"A limit to change, may be given several times. Limits and defaults (units in the names): {shown}"


@tso.command(context_settings={"show_default": True})
@click.option("--name", default=_default_name, show_default="host and process id", envvar="PYTHIA_NAME",
              show_envvar=True, help="This process, unique in the installation.")  # fmt: skip
@click.option("--zookeeper", default="", metavar="HOST:PORT[,…]", envvar="PYTHIA_ZOOKEEPER", show_envvar=True,
              help="ZooKeeper, where lease and members are kept.")  # fmt: skip
@click.option("--alone", is_flag=True, envvar="PYTHIA_ALONE", show_envvar=True,
              help="Serve without ZooKeeper and without failover, as the only process. Never start two.")  # fmt: skip
@click.option("--thrift", required=True, metavar="HOST:PORT[,…]", envvar="PYTHIA_THRIFT", show_envvar=True,
              help="HBase's Thrift gateway (binary protocol, buffered transport), or several of them.")  # fmt: skip
@click.option("--listen", default="127.0.0.1:5480", metavar="HOST:PORT", envvar="PYTHIA_LISTEN", show_envvar=True,
              help="Where to listen; port 0 lets the system choose.")  # fmt: skip
@click.option("--advertise", metavar="HOST:PORT", envvar="PYTHIA_ADVERTISE", show_envvar=True,
              help="Where clients reach this process, if not where it listens.")  # fmt: skip
@_root_option
@click.option("--lease-ms", default=2000, type=int, envvar="PYTHIA_LEASE_MS", show_envvar=True,
              help="Milliseconds after which a standby may take over from a primary that fell silent.")  # fmt: skip
@click.option("--renewals-per-lease", default=4, type=int, envvar="PYTHIA_RENEWALS_PER_LEASE", show_envvar=True,
              help="How often the primary renews its lease within that time.")  # fmt: skip
@click.option("--limit", "limits", multiple=True, metavar="NAME=VALUE", envvar="PYTHIA_LIMITS", show_envvar=True,
              help=_limits_help())  # fmt: skip
@click.option("--rest-port", type=click.IntRange(0, 65_535), envvar="PYTHIA_REST_PORT", show_envvar=True,
              show_default="no REST", help="Serve REST there, in a process beside; 0: any free port.")  # fmt: skip
@click.option("--rest-host", default="127.0.0.1", envvar="PYTHIA_REST_HOST", show_envvar=True,
              help="Where REST listens.")  # fmt: skip
@click.option("--rest-advertise", metavar="HOST:PORT", envvar="PYTHIA_REST_ADVERTISE", show_envvar=True,
              help="Where clients reach REST, if not where it listens.")  # fmt: skip
@click.option("--rest-limit", "rest_limits", multiple=True, metavar="NAME=VALUE", envvar="PYTHIA_REST_LIMITS",
              show_envvar=True, help="A limit of REST to change (docs/rest.md).")  # fmt: skip
@click.option("--log-level", default="info", type=click.Choice(["debug", "info", "warning", "error"]),
              envvar="PYTHIA_LOG_LEVEL", show_envvar=True, help="How much to log, to standard error.")  # fmt: skip
def serve(
    thrift: str,
    zookeeper: str,
    alone: bool,
    log_level: str,
    rest_port: int | None,
    rest_host: str,
    rest_limits: tuple[str, ...],
    **options: Any,
) -> None:
    """Run one oracle process: a standby, which becomes primary when there is none.

    Prints `REST on HOST:PORT` where there is REST, `serving on HOST:PORT as standby`, then a line at each change of
    role (`primary, epoch E`; `standby`).
    SIGTERM releases the lease, so that a standby takes over at once, and ends with exit code 0.
    """
    logging.basicConfig(level=log_level.upper(), format=_LOG_FORMAT)
    logging.getLogger("kazoo").setLevel(logging.WARNING)
    with _explained():
        if alone == bool(zookeeper):
            raise InvalidSettings("give either --zookeeper or --alone")
        if rest_port is None and (options["rest_advertise"] or rest_limits):
            raise InvalidSettings("--rest-advertise and --rest-limit are about REST: give --rest-port, too")
        listening = None if rest_port is None else listen(rest_host, rest_port)
        if listening is not None and options["rest_advertise"] is None:
            options["rest_advertise"] = _reachable(address_of(listening), rest_host)
        settings = _serve_settings(zookeeper, thrift, **options)
        rest = None
        if listening is not None:
            rest = _rest(listening, settings, log_level, rest_limits)
            _say(f"REST on {address_of(listening)}")
        pool = PoolSettings(
            connections_max=max(settings.limits.commit_writers, settings.limits.lookup_threads + 1),
            request_timeout_ms=_STORE_REQUEST_TIMEOUT_MS,
            unavailable_after_ms=_STORE_UNAVAILABLE_AFTER_MS,
        )
        with (
            contextlib.closing(HBaseCellStore(thrift, pool)) as store,
            contextlib.nullcontext() if alone else contextlib.closing(ZooKeeperCoordinator(zookeeper)) as coordinator,
        ):
            if coordinator is None:
                require_alone(store, settings.root)
            code = _run(_serve(settings, coordinator, store, pool, rest))
    raise SystemExit(code)


@tso.command(context_settings={"show_default": True})
@click.option("--listen", default="127.0.0.1:5480", metavar="HOST:PORT", help="Where to listen; port 0: any free one.")
@click.option("--limit", "limits", multiple=True, metavar="NAME=VALUE", help=_limits_help())
def volatile(listen: str, limits: tuple[str, ...]) -> None:
    """Run an oracle that needs no service and keeps nothing: to try it out, and to measure it.

    Its commits are lost with the process, and no reader of HBase learns of them.
    """
    logging.basicConfig(level="WARNING", format=_LOG_FORMAT)
    with _explained():
        host, port = parse_listen(listen)
        settings = ServeSettings(
            _default_name(), "", "", listen_host=host, listen_port=port, limits=Limits.parse(limits)
        )
        raise SystemExit(_run(run_with_signals(volatile_process(settings, _say))))


def _run(serving: Coroutine[Any, Any, int]) -> int:
    """On libuv's event loop, whose own cost for a frame is a fraction of asyncio's."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serving)


async def _serve(
    settings: ServeSettings,
    coordinator: ZooKeeperCoordinator | None,
    store: HBaseCellStore,
    pool: PoolSettings,
    rest: RestProcess | None,
) -> int:
    putter = GatewayPutter(settings.thrift, pool)
    beside = None if rest is None else rest.run
    try:
        return await run_with_signals(OracleProcess(settings, coordinator, store, putter, announce=_say, beside=beside))
    finally:
        await putter.close()


def _reachable(address: str, host: str) -> str:
    """Where a socket is reached. Raises ``InvalidSettings`` where its address does not say."""
    if host in ("", "0.0.0.0", "::"):
        raise InvalidSettings(
            f"REST on every interface ({host}) says nothing about how clients reach it: name it with --rest-advertise"
        )
    return address


def _rest(listening: socket.socket, settings: ServeSettings, log_level: str, limits: tuple[str, ...]) -> RestProcess:
    options = ["--zookeeper", settings.zookeeper, "--thrift", settings.thrift, "--root", settings.root]
    return RestProcess(
        listening, [*options, "--log-level", log_level, *(part for limit in limits for part in ("--limit", limit))]
    )


def _say(line: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # who read the lines may have gone; serving goes on
        click.echo(line)


def _serve_settings(
    zookeeper: str,
    thrift: str,
    *,
    name: str,
    listen: str,
    advertise: str | None,
    root: str,
    lease_ms: int,
    renewals_per_lease: int,
    limits: tuple[str, ...],
    rest_advertise: str | None,
) -> ServeSettings:
    host, port = parse_listen(listen)
    return ServeSettings(
        name=name,
        zookeeper=zookeeper,
        thrift=thrift,
        listen_host=host,
        listen_port=port,
        advertise=advertise,
        rest_advertise=rest_advertise,
        root=root,
        lease=lease_settings(lease_ms, renewals_per_lease),
        limits=Limits.parse(limits),
    )


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """What an operator can put right is told in one line, without a traceback."""
    try:
        yield
    except (InvalidSettings, LeaseError, CannotHandOver, NotAlone, OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error


@tso.command()
@_zookeeper_option
@_root_option
@click.option(
    "--timeout-ms", default=2000, show_default=True, type=click.IntRange(min=1), help="For each process asked."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: an object with `members`.")
def status(zookeeper: str, root: str, timeout_ms: int, as_json: bool) -> None:
    """Show every oracle process and its state. Exit code 1 when none of them is primary."""
    with _explained(), contextlib.closing(ZooKeeperCoordinator(zookeeper)) as coordinator:
        seen = look(coordinator, root, timeout_ms=timeout_ms)
    if as_json:
        click.echo(json.dumps({"members": [_state(one) for one in seen]}, indent=2))
    else:
        _print_states(seen)
    if not any(one.role == "primary" for one in seen):
        raise SystemExit(1)


@tso.command()
@_zookeeper_option
@_root_option
@click.option(
    "--timeout-ms", default=10_000, show_default=True, type=click.IntRange(min=1), help="For the whole hand-over."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def handover(zookeeper: str, root: str, timeout_ms: int, as_json: bool) -> None:
    """Have the primary finish what is under way and a standby take over: clients see a pause, and no error."""
    with _explained(), contextlib.closing(ZooKeeperCoordinator(zookeeper)) as coordinator:
        done = hand_over(coordinator, root, timeout_ms=timeout_ms)
    if as_json:
        click.echo(json.dumps(asdict(done)))
    else:
        click.echo(
            f"{done.from_holder} handed over to {done.to_holder}, epoch {done.to_epoch}, in {done.took_ms:.0f} ms"
        )


def _state(seen: Seen) -> dict[str, Any]:
    state: dict[str, Any] = {"holder": seen.member.holder, "address": seen.member.address, "role": seen.role}
    if seen.status is None:
        return {**state, "problem": seen.problem}
    return {**state, **{name: getattr(seen.status, name) for name in StatusReply.NUMBERS}}


_STATUS_WIDTH_CHARACTERS = 160
_COLUMNS = {
    "holder": "process",
    "address": "address",
    "role": "role",
    "epoch": "epoch",
    "begins": "begun",
    "commits": "committed",
    "refused_commits": "refused",
    "transactions_in_flight": "in flight",
}


def _print_states(seen: list[Seen]) -> None:
    if not seen:
        click.echo("No oracle process is a member here. Start one: pythia tso serve --help")
        return
    table = Table(box=None, pad_edge=False)
    for title in _COLUMNS.values():
        table.add_column(title, no_wrap=True)
    for one in seen:
        state = _state(one)
        table.add_row(*(str(state.get(name, "")) for name in _COLUMNS))
    # What a narrow terminal cannot hold in a line it may break; a number is never cut short.
    Console(width=_STATUS_WIDTH_CHARACTERS, soft_wrap=True).print(table)
    for one in seen:
        if one.problem:
            click.echo(one.problem, err=True)


@click.group()
def ts() -> None:
    """Timestamps: decode."""


@ts.command()
@click.argument("timestamp", type=int)
def decode(timestamp: int) -> None:
    """Say when TIMESTAMP was taken: wall time (UTC), milliseconds since 1970, counter."""
    try:
        moment = wall_time_of(timestamp)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{moment.isoformat(timespec='milliseconds')}  "
               f"milliseconds {milliseconds_of(timestamp)}  counter {counter_of(timestamp)}")  # fmt: skip
