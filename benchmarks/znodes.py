"""Znodes that a benchmark's oracle made, deleted at its end."""

from __future__ import annotations

import contextlib

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

CONNECT_SECONDS_MAX = 10.0


def delete_znodes(zookeeper: str, root: str) -> None:
    """Delete ``root`` and all below it; a ZooKeeper that is gone took them along. ``zookeeper``: ``host:port``."""
    client = KazooClient(zookeeper)
    with contextlib.suppress(KazooException, KazooTimeoutError):
        client.start(CONNECT_SECONDS_MAX)
        client.delete(root, recursive=True)
    client.stop()
    client.close()
