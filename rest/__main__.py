"""`python -m rest`: the process that `pythia tso serve --rest-listen` starts beside its oracle.

It ends with its parent, however that ends: its standard input is a pipe of which the parent holds the other end, and
the kernel closes that even after SIGKILL. To each byte that comes there it says on its standard output how many
transactions it holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import click
import uvicorn
import uvloop
from fastapi import FastAPI

from access import BadTokens
from access.server_files import ServerFiles
from access.tls import BadTls, ServerTls
from client import ClientSettings, InvalidRequest
from client.connection.primary import Directory, SoloDirectory, ZooKeeperDirectory
from client.connection.services import store_of, zookeeper_of
from client.settings import WAYS
from commit_table import system_table
from configuration.checking import Wrong
from configuration.defaults import SHADOW_CELLS
from configuration.rest_limits import REST_LIMITS, RestLimits
from configuration.sources import values_of_pairs
from lease.solo import SoloRegistry
from logs.lines import FORMATS, LEVELS, Standing, configure_logs
from rest.app import create_app
from rest.callers import Callers
from rest.roles import open_to_all
from rest.server import GRACE_SECONDS_MAX, make_server, serve
from rest.services import Installation, Services
from rest.whereabouts import AlwaysHere, LeaseWatch, Whereabouts

_log = logging.getLogger(__name__)


CANNOT_WORK_CODE = 2
"""The exit code where it was given what cannot work: whoever starts it need not try again."""


def way_options(command: Callable[..., None]) -> Callable[..., None]:
    """A flag for each value by which ZooKeeper and the gateway are spoken to where they speak TLS or Kerberos."""
    for name in WAYS:
        command = click.option(f"--{name.replace('_', '-')}", default="")(command)
    return command


@click.command()
@click.option("--listening-socket", required=True, type=int, help="A file descriptor that is inherited.")
@click.option("--oracle", required=True, metavar="HOST:PORT", help="The oracle beside, as clients are told of it.")
@click.option("--zookeeper", default="", help="Where the lease is; empty: the oracle is alone.")
@click.option("--thrift", required=True, metavar="HOST:PORT[,…]", help="HBase's Thrift gateway.")
@click.option("--root", required=True, help="Znode of the installation.")
@click.option("--limit", "limits", multiple=True, metavar="NAME=VALUE", help="A limit to change.")
@click.option("--tokens-file", default="", help="Who may do what; empty: everybody everything.")
@click.option("--token-file", default="", help="Holds the token of this process.")
@click.option("--tls-certificate-file", default="", help="For HTTPS, and to show to oracles that ask for one.")
@click.option("--tls-key-file", default="")
@click.option("--tls-client-authority-file", default="", help="Every client must show a certificate of it.")
@click.option("--tls-authority-file", default="", help="Who signs the oracles' certificates.")
@way_options
@click.option("--own-name", "own_names", multiple=True, help="A host name by which it may be asked.")
@click.option("--shadow-cells", default=SHADOW_CELLS[0], type=click.Choice(SHADOW_CELLS), help="When they are written.")
@click.option("--log-level", default="info", type=click.Choice(LEVELS))
@click.option("--log-format", default="text", type=click.Choice(FORMATS))
def main(
    listening_socket: int,
    oracle: str,
    zookeeper: str,
    thrift: str,
    root: str,
    limits: tuple[str, ...],
    tokens_file: str,
    token_file: str,
    tls_certificate_file: str,
    tls_key_file: str,
    tls_client_authority_file: str,
    tls_authority_file: str,
    own_names: tuple[str, ...],
    shadow_cells: str,
    log_level: str,
    log_format: str,
    **ways: Any,
) -> None:
    """Serve REST until standard input ends."""
    configure_logs(log_level, log_format, Standing("rest"))
    try:
        chosen = RestLimits(**values_of_pairs(REST_LIMITS, "--limit", limits, {}))
        settings = ClientSettings(
            zookeeper=zookeeper,
            thrift=thrift,
            root=root,
            oracle="" if zookeeper else oracle,
            deadline_ms=chosen.deadline_ms,
            transaction_bytes_max=chosen.transaction_bytes_max,
            store_connections_max=chosen.threads_max,
            shadow_cells=shadow_cells,
            token_file=token_file,
            tls_authority_file=tls_authority_file,
            tls_certificate_file=tls_certificate_file if tls_authority_file else "",
            tls_key_file=tls_key_file if tls_authority_file else "",
            **ways,
        )
        callers = Callers(tokens_file) if tokens_file else None
        files = ServerFiles(tls_certificate_file, tls_key_file, tls_client_authority_file)
        tls = ServerTls(files, time.monotonic()) if tls_certificate_file else None
    except (Wrong, InvalidRequest, BadTokens, BadTls, OSError) as error:
        _log.error("%s", str(error))
        raise SystemExit(CANNOT_WORK_CODE) from error
    scheme = "http" if tls is None else "https"
    names = (*own_names, socket.gethostname())
    require = open_to_all if callers is None else callers.require
    app = create_app(lambda: connect(settings, oracle, scheme), chosen, require=require)
    with contextlib.closing(socket.socket(fileno=listening_socket)) as listening:
        server = make_server(app, chosen, log_level=log_level, callers=callers, tls=tls, own_names=names)
        threading.Thread(target=_obey_parent, args=(server, partial(_held, app)), daemon=True).start()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(server, listening))


def connect(settings: ClientSettings, oracle: str, scheme: str) -> Installation:
    """The real installation. What is not reached now is reached when it is first needed."""
    store = store_of(settings)
    if settings.oracle:
        directory: Directory = SoloDirectory(oracle, SoloRegistry(store, system_table(settings.root, "epoch")))
        return Installation(settings, store, directory, AlwaysHere(), oracle, store.close, scheme)
    found = ZooKeeperDirectory(settings)
    coordinator = zookeeper_of(settings)
    watch = LeaseWatch(coordinator, settings.root, oracle)
    whereabouts: Whereabouts = watch
    closing: list[Callable[[], None]] = [watch.close, coordinator.close, found.close, store.close]

    def close() -> None:
        for one in closing:
            one()

    return Installation(settings, store, found, whereabouts, oracle, close, scheme, coordinator)


def _held(app: FastAPI) -> int:
    """Transactions, of callers, that are open here or about to be."""
    services: Services | None = getattr(app.state, "services", None)  # until it has started it has none
    return 0 if services is None else services.held_transactions.unfinished


def _obey_parent(server: uvicorn.Server, held: Callable[[], int]) -> None:
    """Say what is held until standard input ends; then end in order, or, where that takes too long, at once."""
    while os.read(sys.stdin.fileno(), 1):
        with contextlib.suppress(OSError):  # the parent has gone: standard input ends, too
            os.write(sys.stdout.fileno(), b"%d\n" % held())
    _log.info("the oracle beside has ended")
    server.should_exit = True
    threading.Event().wait(2 * GRACE_SECONDS_MAX)
    os._exit(1)


if __name__ == "__main__":
    main()
