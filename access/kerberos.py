"""Who a client is to a service that asks for Kerberos: looked through before anything is sent, asked for each time.

The invariant is that of ``access.service_tls``: whether Kerberos is spoken is said by the service's address alone
(``kerberos://``), and who is named for it is never left out of what is said.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from access.gssapi import KerberosFailure, KerberosUnavailable, SecurityContext, require_library
from access.services import CALLED, GATEWAY, KERBEROS, ZOOKEEPER, Kerberos

SERVICES: Final[Mapping[str, str]] = {GATEWAY: "hbase", ZOOKEEPER: "zookeeper"}
"""As the documentation of HBase and of ZooKeeper names the first part of their principals."""


class BadKerberos(ValueError):
    """What no Kerberos can be spoken with; the text says what and why."""


def checked(kerberos: Kerberos, service: str, *, spoken: bool) -> Kerberos:
    """``kerberos`` with what the environment says of it. ``spoken``: whether the addresses say Kerberos.

    Raises ``BadKerberos`` for what cannot be used, or is there though no address says Kerberos.
    """
    found = kerberos.completed(os.environ, service)
    if not spoken:
        if words := found.unspoken(service, "asks for Kerberos", KERBEROS):
            raise BadKerberos(words)
        return found
    try:
        require_library()
    except KerberosUnavailable as error:
        raise BadKerberos(str(error)) from error
    for name in ("/", "@"):
        if name in found.service:
            usual = SERVICES[service]
            raise BadKerberos(
                f"{found.setting(service, 'service')} is the first part of the {CALLED[service]}'s principal alone, as "
                f"in {usual} for {usual}/host@REALM; not {found.service!r}"
            )
    if found.keytab_file:
        try:
            Path(found.keytab_file).open("rb").close()
        except OSError as error:
            raise BadKerberos(f"{found.setting(service, 'keytab_file')}: {error}") from error
    return found


def context_for_connection(kerberos: Kerberos, service: str, host: str) -> SecurityContext:
    """For the next one, to ``host``. Raises ``KerberosFailure`` where there are no tickets nor a key to get them by."""
    return SecurityContext(
        _asked_for(kerberos, service), host, principal=kerberos.principal, keytab_file=kerberos.keytab_file
    )


@contextmanager
def in_words(kerberos: Kerberos, service: str, host: str) -> Iterator[None]:
    """Raise ``ConnectionError`` for what the library says, with who was asked for by whom."""
    try:
        yield
    except KerberosFailure as error:
        who = f" as {kerberos.principal}" if kerberos.principal else ""
        by = f" by {kerberos.keytab_file}" if kerberos.keytab_file else ""
        hint = "" if by else f" (tickets come by kinit, or by a key: {kerberos.variable(service, 'keytab_file')})"
        whom = f"{_asked_for(kerberos, service)}/{host}"
        raise ConnectionError(f"Kerberos with {whom}{who}{by}: {error}{hint}") from error


def refused(why: str, kerberos: Kerberos, service: str, host: str) -> ConnectionError:
    """What to raise where the service said ``why`` it does not agree."""
    asked_for, named = _asked_for(kerberos, service), kerberos.variable(service, "service")
    return ConnectionError(
        f"it refused Kerberos: {why}; it was asked for as {asked_for}/{host}, of which {named} is the first part"
    )


def _asked_for(kerberos: Kerberos, service: str) -> str:
    """The first part of the principal that a service is asked for as."""
    return kerberos.service or SERVICES[service]
