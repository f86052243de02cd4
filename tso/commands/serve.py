"""`pythia tso …`: run an oracle, and see how the oracles are.

Where a setting may come from, and which source has precedence, is in `configuration`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
import socket
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import click
import uvloop

from access import Credentials
from access.credentials import TOKEN_VARIABLE
from access.exposure import is_loopback
from access.services import GATEWAY, ZOOKEEPER, Kerberos, TlsFiles, settings_of_services
from configuration import Section
from configuration.connection_flags import root_flag, zookeeper_flag
from configuration.misspelt import misspelt
from configuration.options import file_flag, flags
from configuration.rest_limits import REST_LIMITS
from fleet import ASKED_MS_MAX, Observed, Seen, hand_over, look, observe
from lease import Member, PrimaryFinder
from lease.credentials import CREDENTIALS_VARIABLE
from lease.zookeeper import ZooKeeperCoordinator
from logs.lines import Standing, configure_logs
from store import StoreError
from store.hbase import HBaseCellStore, PoolSettings
from store.hbase.addresses import parse_addresses
from store.hbase.putter import GatewayPutter
from tso.alone import require_alone
from tso.commands.credential_flags import credential_flags
from tso.commands.drain import drain_command
from tso.commands.ending_group import EndingGroup
from tso.commands.endings import Ending
from tso.commands.history import as_objects, history, last_tenures, print_tenures
from tso.commands.metrics import metrics
from tso.commands.printing import print_table
from tso.commands.protect import protect_command
from tso.commands.zookeeper_session import writing_session
from tso.levels import LevelAgreement
from tso.options import ORACLE, ServeOptions, choose, default_name, limits_of
from tso.persistence.identity import DataAgreement
from tso.process import OracleProcess, run_with_signals
from tso.rest_process import RestProcess, address_of, listen
from tso.serving.descriptors import hold_standard_descriptors, raise_descriptor_limit
from tso.settings import LIMITS, InvalidSettings, ServeSettings, names_of, parse_listen
from tso.volatile import volatile_process
from wire import StatusReply

log = logging.getLogger(__name__)

_STORE_UNAVAILABLE_AFTER_MS = 1_000
_STORE_REQUEST_TIMEOUT_MS = 3_000
"""The store gives up soon: who repeats a write here has to look at the lease between two tries."""

_members = zookeeper_flag("where lease and members are kept.")


@click.group(cls=EndingGroup)
def tso() -> None:
    """The transaction status oracle: serve, status, history, metrics, handover, drain, protect."""


tso.add_command(metrics)
tso.add_command(history)
tso.add_command(drain_command)
tso.add_command(protect_command)


def _limits_help(section: Section) -> str:
    shown = ", ".join(f"{limit.name}={limit.default}" for limit in section.settings)
    return (
        f"A limit to change, may be given several times  [environment: {section.many_environment}]. Limits and "
        f"defaults (units in the names): {shown}"
    )


@tso.command()
@file_flag
@flags(ORACLE)
@click.option("--limit", "limits", multiple=True, metavar="NAME=VALUE", help=_limits_help(LIMITS))
@click.option("--rest-limit", "rest_limits", multiple=True, metavar="NAME=VALUE", help=_limits_help(REST_LIMITS))
def serve(file: str | None, limits: tuple[str, ...], rest_limits: tuple[str, ...], **given: str | bool | None) -> None:
    """Run one oracle process: a standby, which becomes primary when there is none.

    Prints `REST on HOST:PORT` where there is REST, `serving on HOST:PORT as standby`, then a line at each change of
    role (`primary, epoch E`; `standby`).
    SIGTERM releases the lease, so that a standby takes over at once, and ends with exit code 0.
    """
    hold_standard_descriptors()
    chosen = choose(file, os.environ, given, limits, rest_limits)
    settings, standing = chosen.settings(), Standing()
    configure_logs(chosen.options.log_level, chosen.options.log_format, standing)
    log.info("settings: %s", chosen.changed)
    for sentence in misspelt(os.environ, (TOKEN_VARIABLE, CREDENTIALS_VARIABLE)):
        log.warning("%s", sentence)
    raise_descriptor_limit(settings.limits.connections_max)
    rest = None
    if chosen.options.rest_listen:
        listening = listen(*parse_listen(chosen.options.rest_listen))
        settings = replace(settings, rest_advertise=settings.rest_advertise or address_of(listening))
        rest = _rest(listening, settings, chosen.options, chosen.rest_limits)
        _say(f"REST on {address_of(listening)}")
    pool = PoolSettings(
        # of look-ups, of commits that are read back, and one for all else: none waits for another's connection
        connections_max=settings.limits.lookup_threads + settings.limits.commit_writers + 1,
        request_timeout_ms=_STORE_REQUEST_TIMEOUT_MS,
        unavailable_after_ms=_STORE_UNAVAILABLE_AFTER_MS,
        tls=TlsFiles.named_in(chosen.options, GATEWAY),
        kerberos=Kerberos.named_in(chosen.options, GATEWAY),
    )
    with (
        contextlib.closing(HBaseCellStore(settings.thrift, pool)) as store,
        _coordinator(chosen.options) as coordinator,
    ):
        LevelAgreement(store, coordinator, settings.root, settings.lease.request_timeout_ms).look()
        _look_at_data(settings, coordinator, pool)
        if coordinator is None:
            require_alone(store, settings.root)
        code = _run(_serve(settings, coordinator, store, pool, standing, rest))
    raise SystemExit(code)


@tso.command(context_settings={"show_default": True})
@click.option(
    "--listen", default="127.0.0.1:5480", metavar="HOST:PORT", help="Where on this machine to listen; port 0: any."
)
@click.option("--limit", "limits", multiple=True, metavar="NAME=VALUE", help=_limits_help(LIMITS))
def volatile(listen: str, limits: tuple[str, ...]) -> None:
    """Run an oracle that needs no service and keeps nothing: to try it out, and to measure it.

    Its commits are lost with the process, and no reader of HBase learns of them.
    """
    configure_logs("warning", "text", Standing())
    host, port = parse_listen(listen)
    if not is_loopback(host):
        raise InvalidSettings("it asks for no token: it listens on this machine only")
    chosen = limits_of(os.environ, limits)
    settings = ServeSettings(default_name(), "", "", listen_host=host, listen_port=port, limits=chosen)
    raise SystemExit(_run(run_with_signals(volatile_process(settings, _say))))


def _run(serving: Coroutine[Any, Any, int]) -> int:
    """On libuv's event loop, whose own cost for a frame is a fraction of asyncio's.

    What was imported stays for good: Python's garbage collector need not look through it, and hold everybody up, again
    and again.
    """
    gc.freeze()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serving)


async def _serve(
    settings: ServeSettings,
    coordinator: ZooKeeperCoordinator | None,
    store: HBaseCellStore,
    pool: PoolSettings,
    standing: Standing,
    rest: RestProcess | None,
) -> int:
    putter = GatewayPutter(settings.thrift, pool)
    try:
        process = OracleProcess(
            settings,
            coordinator,
            store,
            putter,
            announce=_say,
            standing=standing,
            beside=rest,
            give_up=partial(os._exit, Ending.DEFECT),
        )
        return await run_with_signals(process)
    finally:
        await putter.close()


def _look_at_data(settings: ServeSettings, coordinator: ZooKeeperCoordinator | None, pool: PoolSettings) -> None:
    """Through each gateway by itself: one of several may be another cluster's. One that does not answer may be down."""
    for address in map(str, parse_addresses(settings.thrift)):
        with contextlib.closing(HBaseCellStore(address, pool)) as store:
            try:
                DataAgreement(replace(settings, thrift=address), coordinator, store).look()
            except StoreError as error:
                log.warning("whether the gateway at %s leads to the data is not known: %s", address, str(error))


def _rest(
    listening: socket.socket, settings: ServeSettings, options: ServeOptions, limits: tuple[str, ...]
) -> RestProcess:
    """It is told where its secrets lie, and reads them itself."""
    security = {
        "tokens-file": options.tokens_file,
        "token-file": options.rest_token_file,
        "tls-certificate-file": options.tls_certificate_file,
        "tls-key-file": options.tls_key_file,
        "tls-client-authority-file": options.tls_client_authority_file,
        "tls-authority-file": options.rest_tls_authority_file,
        **{name.replace("_", "-"): getattr(options, name) for name in settings_of_services()},
    }
    files = [part for name, path in security.items() if path for part in (f"--{name}", path)]
    addresses = filter(None, (options.rest_advertise, options.advertise, options.rest_listen))
    names = [*(address.rpartition(":")[0] for address in addresses), *names_of(options.rest_names)]
    command = ["--zookeeper", settings.zookeeper, "--thrift", settings.thrift, "--root", settings.root]
    return RestProcess(
        listening,
        [
            *command,
            *files,
            *(part for name in names for part in ("--own-name", name)),
            *("--shadow-cells", options.rest_shadow_cells),
            *("--log-level", options.log_level, "--log-format", options.log_format),
            *(part for limit in limits for part in ("--limit", limit)),
        ],
    )


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # who read the lines may have gone, or the disk be full; serving goes on
        click.echo(line)


def _coordinator(options: ServeOptions) -> contextlib.AbstractContextManager[ZooKeeperCoordinator | None]:
    if not options.zookeeper:
        return contextlib.nullcontext()
    return writing_session(
        options.zookeeper,
        options.root,
        options.zookeeper_credentials_file,
        tls=TlsFiles.named_in(options, ZOOKEEPER),
        kerberos=Kerberos.named_in(options, ZOOKEEPER),
        may_be_open=options.insecure_zookeeper_unprotected,
    )


@tso.command()
@_members
@root_flag
@click.option(
    "--timeout-ms",
    default=2000,
    show_default=True,
    type=click.IntRange(1, ASKED_MS_MAX),
    help="For each process asked.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: an object with `members` and `history`.")
@credential_flags
def status(zookeeper: str, root: str, timeout_ms: int, as_json: bool, credentials: Credentials) -> None:
    """Show every oracle process and its state, and the last tenures. Exit code 3 when none of them is primary.

    A standby that is not warm yet, since it compiles or waits for HBase, cannot take over before it is. What else keeps
    one from it is said below the table.
    """
    with contextlib.closing(ZooKeeperCoordinator(zookeeper)) as coordinator:
        seen = look(coordinator, root, timeout_ms=timeout_ms, credentials=credentials)
        tenures = last_tenures(coordinator, root, _TENURES_SHOWN)
        lease = None if seen else PrimaryFinder(coordinator, root).current()
    standbys = [one.member for one in seen if one.role == "standby"]
    told = {one.member: one for one in observe(standbys, timeout_ms=timeout_ms, credentials=credentials)}
    states = [_state(one, told.get(one.member)) for one in seen]
    if as_json:
        click.echo(json.dumps({"members": states, "history": as_objects(tenures)}, indent=2))
    else:
        if lease is None:
            _print_states(seen, states)
        else:
            unseen = Member(lease.holder, "unseen", lease.addresses[0])
            _print_unseen(*observe([unseen], timeout_ms=timeout_ms, credentials=credentials))
        if tenures:
            click.echo()
            print_tenures(tenures)
    if not any(one.role == "primary" for one in seen):
        raise SystemExit(Ending.UNREACHABLE)


@tso.command()
@_members
@root_flag
@click.option(
    "--timeout-ms",
    default=10_000,
    show_default=True,
    type=click.IntRange(1, ASKED_MS_MAX),
    help="For the whole hand-over.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@credential_flags
def handover(zookeeper: str, root: str, timeout_ms: int, as_json: bool, credentials: Credentials) -> None:
    """Have the primary finish what is under way and a standby take over: clients see a pause, and no error."""
    with contextlib.closing(ZooKeeperCoordinator(zookeeper)) as coordinator:
        done = hand_over(coordinator, root, timeout_ms=timeout_ms, credentials=credentials)
    if as_json:
        click.echo(json.dumps(asdict(done)))
    else:
        click.echo(
            f"{done.from_holder} handed over to {done.to_holder}, epoch {done.to_epoch}, in {done.took_ms:.0f} ms"
        )


def _state(seen: Seen, standby: Observed | None) -> dict[str, Any]:
    """Who is no standby serves: it is warm, and nothing keeps it from that."""
    state: dict[str, Any] = {"holder": seen.member.holder, "address": seen.member.address, "role": seen.role}
    if seen.status is None:
        return {**state, "problem": seen.problem}
    state["warm"] = True if standby is None else standby.warm
    state["hindrance"] = "" if standby is None else standby.hindrance
    return {**state, **{name: getattr(seen.status, name) for name in StatusReply.NUMBERS}}


_TENURES_SHOWN = 3
_COLUMNS = {
    "holder": "process",
    "address": "address",
    "role": "role",
    "warm": "warm",
    "epoch": "epoch",
    "begins": "begun",
    "commits": "committed",
    "refused_commits": "refused",
    "transactions_in_flight": "in flight",
}


_WORDS = {True: "yes", False: "no", None: "?"}


def _print_states(seen: Sequence[Seen], states: Sequence[Mapping[str, Any]]) -> None:
    if not seen:
        click.echo("No oracle process is a member here. Start one: pythia tso serve --help")
        return
    shown = ({**state, "warm": _WORDS[state["warm"]]} if "warm" in state else state for state in states)
    print_table(_COLUMNS.values(), ([str(state.get(name, "")) for name in _COLUMNS] for state in shown))
    for state in states:
        if state.get("hindrance"):
            click.echo(f"{state['holder']} cannot become primary now: {state['hindrance']}")
    for one in seen:
        if one.problem:
            click.echo(f"error: {one.problem}{'' if one.is_closed else '; look at its log'}", err=True)


def _print_unseen(holder: Observed) -> None:
    """Who has the lease, where nobody is a member."""
    click.echo(
        f"No oracle process is a member here, though {holder.member.holder} at {holder.member.address} has the "
        "lease: its log says why it is not shown. Where it has ended, start one: pythia tso serve --help"
    )
    if holder.status is None:
        click.echo(f"error: {holder.problem}", err=True)
    else:
        says = ": ".join(filter(None, (holder.status.role.name.lower(), holder.hindrance)))
        click.echo(f"It says that it is {says}")
