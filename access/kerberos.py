"""Who a client is to a gateway that asks for Kerberos: looked through before anything is sent, asked for each time.

The invariant is that of ``access.service_tls``: whether Kerberos is spoken is said by the gateway's address alone
(``kerberos://``), and who is named for it is never left out of what is said.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from access.gssapi import KerberosFailure, KerberosUnavailable, SecurityContext, require_library
from access.services import GATEWAY, Kerberos

SERVICE: Final = "hbase"
"""As HBase's own documentation names the gateway's principal."""


class BadKerberos(ValueError):
    """What no Kerberos can be spoken with; the text says what and why."""


def checked(kerberos: Kerberos, *, spoken: bool) -> Kerberos:
    """``kerberos`` with what the environment says of it. ``spoken``: whether the addresses say Kerberos.

    Raises ``BadKerberos`` for what cannot be used, or is there though no address says Kerberos.
    """
    found = kerberos.completed(os.environ, GATEWAY)
    if not spoken:
        if words := found.unspoken(GATEWAY, "asks for Kerberos", "kerberos://"):
            raise BadKerberos(words)
        return found
    try:
        require_library()
    except KerberosUnavailable as error:
        raise BadKerberos(str(error)) from error
    for name in ("/", "@"):
        if name in found.service:
            raise BadKerberos(
                f"{found.setting(GATEWAY, 'service')} is the first part of the gateway's principal alone, as in "
                f"{SERVICE} for {SERVICE}/host@REALM; not {found.service!r}"
            )
    if found.keytab_file:
        try:
            Path(found.keytab_file).open("rb").close()
        except OSError as error:
            raise BadKerberos(f"{found.setting(GATEWAY, 'keytab_file')}: {error}") from error
    return found


def context_for_connection(kerberos: Kerberos, host: str) -> SecurityContext:
    """For the next one, to ``host``. Raises ``ConnectionError`` where there are no tickets nor a key to get them by."""
    try:
        return SecurityContext(
            kerberos.service or SERVICE, host, principal=kerberos.principal, keytab_file=kerberos.keytab_file
        )
    except KerberosFailure as error:
        raise not_agreed(error, kerberos, host) from error


def not_agreed(error: KerberosFailure, kerberos: Kerberos, host: str) -> ConnectionError:
    """What to raise for what the library said."""
    who = f" as {kerberos.principal}" if kerberos.principal else ""
    by = f" by {kerberos.keytab_file}" if kerberos.keytab_file else ""
    hint = "" if by else f" (tickets come by kinit, or by a key: {kerberos.variable(GATEWAY, 'keytab_file')})"
    return ConnectionError(f"Kerberos with {kerberos.service or SERVICE}/{host}{who}{by}: {error}{hint}")


def refused(why: str, kerberos: Kerberos, host: str) -> ConnectionError:
    """What to raise where the gateway said ``why`` it does not agree."""
    service, named = kerberos.service or SERVICE, kerberos.variable(GATEWAY, "service")
    return ConnectionError(
        f"it refused Kerberos: {why}; it was asked for as {service}/{host}, of which {named} is the first part"
    )
