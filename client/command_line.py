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
    click.option("--zookeeper", default="", metavar="HOST:PORT[,…]", envvar="PYTHIA_ZOOKEEPER", show_envvar=True,
                 help="ZooKeeper, where the primary oracle is found."),
    click.option("--oracle", default="", metavar="HOST:PORT", envvar="PYTHIA_ORACLE", show_envvar=True,
                 help="In its place: an oracle that serves alone."),
    click.option("--thrift", required=True, metavar="HOST:PORT[,…]", envvar="PYTHIA_THRIFT", show_envvar=True,
                 help="HBase's Thrift gateway, or several of them."),
    click.option("--root", default="/pythia", show_default=True, metavar="ZNODE", envvar="PYTHIA_ROOT",
                 show_envvar=True, help="Znode of the installation."),
)  # fmt: skip


def connecting(command: Command) -> Command:
    """Give a command the options of ``managed``."""
    for option in reversed(_CONNECTION):
        command = option(command)
    return command


@contextmanager
def managed(zookeeper: str, oracle: str, thrift: str, root: str) -> Iterator[TransactionManager]:
    """A manager for one command; see ``explained``."""
    with explained(), TransactionManager.connect(ClientSettings(zookeeper, thrift, root, oracle=oracle)) as manager:
        yield manager


@contextmanager
def explained() -> Iterator[None]:
    """Raise ``click.ClickException`` for what an operator can put right."""
    try:
        yield
    except (PythiaError, StoreError, LeaseError) as error:
        raise click.ClickException(str(error)) from error
