"""``pythia tso protect``: nobody changes an installation's znodes but who has the credentials."""

from __future__ import annotations

import click

from configuration.connection_flags import root_flag, zookeeper_flag
from lease import LeaseError
from lease.protection import protect
from tso.commands.zookeeper_session import known_session, zookeeper_credentials_flag


@click.command("protect")
@zookeeper_flag("where lease, level and members are kept.")
@zookeeper_credentials_flag
@root_flag
def protect_command(zookeeper: str, zookeeper_credentials_file: str, root: str) -> None:
    """Let nobody change the installation's znodes but who has the credentials; everybody may go on reading.

    Harmless to repeat, and while oracles run; refused while one runs without credentials.
    """
    try:
        with known_session(zookeeper, zookeeper_credentials_file) as coordinator:
            changed = protect(coordinator, root)
    except LeaseError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{changed} znodes below {root} protected" if changed else f"every znode below {root} was protected")
