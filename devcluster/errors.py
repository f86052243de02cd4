"""What can stop a development cluster, each with a text that says what to do about it.

Invariant: every failure that a person can cause or cure reaches the caller as one of these, never as a bare traceback.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager


class DevClusterError(Exception):
    """Base of all errors of this room; the text is meant to be shown as it is."""


class InvalidSettings(DevClusterError, ValueError):
    """A setting that cannot work."""


class UnusableDirectory(DevClusterError):
    """The directory cannot be written, or holds files that are not a cluster's."""


class JavaMissing(DevClusterError):
    """There is no Java to run."""


class JavaTooOld(DevClusterError):
    """There is a Java, of a version that cannot run the cluster."""


class JavaTooNew(DevClusterError):
    """There is a Java, of a version that can run the cluster no more."""


class PortTaken(DevClusterError):
    """A port that the cluster needs is in use."""


class DiskFull(DevClusterError):
    """There is too little room on a disk."""


class JarListDamaged(DevClusterError):
    """The committed list of jars cannot be read."""


class JarClientMissing(DevClusterError):
    """Neither Maven nor Ivy is there to fetch the jars with."""


class JarsUnreachable(DevClusterError):
    """The client reached no repository: no network, or a mirror that does not answer."""


class JarFetchFailed(DevClusterError):
    """The client ended without all the jars, for a reason other than the network."""


class JarMismatch(DevClusterError):
    """A freshly fetched jar is not the one that the list names."""


class StartFailed(DevClusterError):
    """A server died while it was starting; the text ends with the tail of its log."""


class NotReady(DevClusterError):
    """The servers run, but did not serve a put and a get within the limit."""


class NotRunning(DevClusterError):
    """The call needs a running cluster, or a running part of one."""


class AlreadyRunning(DevClusterError):
    """A healthy cluster runs in the directory with other settings than the ones asked for."""


class StateDamaged(DevClusterError):
    """The state file of a cluster cannot be read."""


class StopFailed(DevClusterError):
    """A server is still there after it was killed."""


class Busy(DevClusterError):
    """Another process holds the lock for longer than the limit."""


@contextmanager
def disk_errors(place: object) -> Iterator[None]:
    """Turn what the file system refuses at ``place`` into an error of this room.

    Raises:
        DiskFull: no space or no quota is left.
        UnusableDirectory: any other refusal.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"the disk that holds {place} is full; make room there and try again") from error
        raise UnusableDirectory(f"cannot work in {place}: {error.strerror or error}") from error
