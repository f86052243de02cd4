"""The session of all who write to ZooKeeper, known by credentials where there are some, or by Kerberos.

Whoever only reads needs none: clients, REST and ``pythia tso status`` do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import click

from access.services import Kerberos, TlsFiles
from lease.credentials import load_credentials
from lease.protection import require_protection
from lease.zookeeper import ZooKeeperCoordinator

_NO_FILES = TlsFiles()
_NOBODY = Kerberos()

zookeeper_credentials_flag = click.option(
    "--zookeeper-credentials-file",
    default="",
    metavar="FILE",
    envvar="PYTHIA_ZOOKEEPER_CREDENTIALS_FILE",
    show_envvar=True,
    help="Holds user:password for ZooKeeper; without it PYTHIA_ZOOKEEPER_CREDENTIALS may be that.",
)


@contextlib.contextmanager
def known_session(
    zookeeper: str, credentials_file: str, tls: TlsFiles = _NO_FILES, kerberos: Kerberos = _NOBODY
) -> Iterator[ZooKeeperCoordinator]:
    """A session. Raises ``LeaseError`` where the credentials cannot be used, or the files for TLS or Kerberos."""
    credentials = load_credentials(credentials_file)
    with contextlib.closing(ZooKeeperCoordinator(zookeeper, credentials, tls=tls, kerberos=kerberos)) as coordinator:
        yield coordinator


@contextlib.contextmanager
def writing_session(
    zookeeper: str,
    root: str,
    credentials_file: str,
    *,
    tls: TlsFiles = _NO_FILES,
    kerberos: Kerberos = _NOBODY,
    may_be_open: bool = False,
) -> Iterator[ZooKeeperCoordinator]:
    """A session that may write below ``root``. Raises ``LeaseError``, also where it turns out that it may not."""
    with known_session(zookeeper, credentials_file, tls, kerberos) as coordinator:
        require_protection(coordinator, root, may_be_open=may_be_open)
        yield coordinator
