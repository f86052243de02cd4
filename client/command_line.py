"""What commands for operators share: where the services are, and what an error looks like.

Invariant: what an operator can put right is told in one line, with exit code 1 and without a traceback.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from client.errors import PythiaError
from client.manager import TransactionManager
from client.settings import ClientSettings
from lease import LeaseError
from store import StoreError

Command = TypeVar("Command", bound=Callable[..., Any])

_CONNECTION = (
    click.option("--zookeeper", default="", envvar="PYTHIA_ZOOKEEPER", help="ZooKeeper, host:port."),
    click.option(
        "--oracle", default="", envvar="PYTHIA_ORACLE", help="In its place: an oracle that serves alone, host:port."
    ),
    click.option("--thrift", required=True, envvar="PYTHIA_THRIFT", help="HBase's Thrift gateway, host:port."),
    click.option(
        "--root", default="/pythia", show_default=True, envvar="PYTHIA_ROOT", help="Znode of the installation."
    ),
)


def connecting(command: Command) -> Command:
    """Give a command the options of ``managed``."""
    for option in reversed(_CONNECTION):
        command = option(command)
    return command


@contextmanager
def managed(zookeeper: str, oracle: str, thrift: str, root: str) -> Iterator[TransactionManager]:
    """A manager for one command. Raises ``click.ClickException`` for what fails with it."""
    try:
        settings = ClientSettings(zookeeper=zookeeper, oracle=oracle, thrift=thrift, root=root)
        with TransactionManager.connect(settings) as manager:
            yield manager
    except (PythiaError, StoreError, LeaseError) as error:
        raise click.ClickException(str(error)) from error
