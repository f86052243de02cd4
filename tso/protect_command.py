"""``pythia tso protect``, and the session of all who write to ZooKeeper, known by credentials where there are some.

Whoever only reads needs none: clients, REST and ``pythia tso status`` do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import click

from lease import LeaseError
from lease.credentials import load_credentials
from lease.paths import DEFAULT_ROOT
from lease.protection import protect, require_protection
from lease.zookeeper import ZooKeeperCoordinator

zookeeper_option = click.option(
    "--zookeeper", required=True, metavar="HOST:PORT[,…]", envvar="PYTHIA_ZOOKEEPER", show_envvar=True,
    help="ZooKeeper, where lease, level and members are kept.",
)  # fmt: skip
credentials_option = click.option(
    "--zookeeper-credentials-file", default="", metavar="FILE", envvar="PYTHIA_ZOOKEEPER_CREDENTIALS_FILE",
    show_envvar=True, help="Holds user:password for ZooKeeper; without it PYTHIA_ZOOKEEPER_CREDENTIALS may be that.",
)  # fmt: skip
root_option = click.option(
    "--root", default=DEFAULT_ROOT, show_default=True, envvar="PYTHIA_ROOT", show_envvar=True,
    help="Znode of the installation.",
)  # fmt: skip


@contextlib.contextmanager
def writing_session(
    zookeeper: str, root: str, credentials_file: str, *, may_be_open: bool = False
) -> Iterator[ZooKeeperCoordinator]:
    """A session that may write below ``root``. Raises ``LeaseError``, also where it turns out that it may not."""
    credentials = load_credentials(credentials_file)
    with contextlib.closing(ZooKeeperCoordinator(zookeeper, credentials)) as coordinator:
        require_protection(coordinator, root, may_be_open=may_be_open)
        yield coordinator


@click.command("protect")
@zookeeper_option
@credentials_option
@root_option
def protect_command(zookeeper: str, zookeeper_credentials_file: str, root: str) -> None:
    """Let nobody change the installation's znodes but who has the credentials; everybody may go on reading.

    Harmless to repeat, and while oracles run; refused while one runs without credentials.
    """
    try:
        credentials = load_credentials(zookeeper_credentials_file)
        with contextlib.closing(ZooKeeperCoordinator(zookeeper, credentials)) as coordinator:
            changed = protect(coordinator, root)
    except LeaseError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{changed} znodes below {root} protected" if changed else f"every znode below {root} was protected")
