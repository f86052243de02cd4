"""TLS to gateways: whom a client believes there and what it shows of itself, read anew for each connection.

HBase's Thrift server with the binary protocol has no TLS of its own. Before it stands something that has: stunnel,
HAProxy, the sidecar of a service mesh; it may ask for a certificate, and so keep everybody else from the tables.

The invariant: whether a connection is TLS is said by its address alone (``store.hbase.addresses.TLS``), and what an
address says is never spoken around: files without it are an error, and no file leads to clear text.
"""

from __future__ import annotations

import os
import ssl
from typing import Final

from access.tls import BadTls, client_context, what_failed
from store.hbase.addresses import Addresses, parse_addresses
from store.hbase.settings import PoolSettings
from store.hbase.tls_files import VARIABLES, TlsFiles

_PLAIN: Final = "where a gateway listens in clear text, its address is host:port without tls://"


def gateways_at(text: str, settings: PoolSettings) -> Addresses:
    """The gateways of ``"host:port"``, or several separated by commas, in the order in which to try them.

    Raises ``BadAddress``; ``BadTls`` for files that cannot be used, or are there though no address says TLS.
    """
    addresses = Addresses(parse_addresses(text), avoid_failed_ms=settings.avoid_failed_ms)
    if addresses.tls:
        _check(settings.tls)
    else:
        _refuse_any(settings.tls)
    return addresses


def context_for_connection(files: TlsFiles) -> ssl.SSLContext:
    """Raises ``ConnectionError`` where files cannot be used, which somebody may be replacing just now."""
    try:
        return _context(files)
    except BadTls as error:
        raise ConnectionError(str(error)) from error


def name_of(files: TlsFiles, host: str) -> str:
    """Whom the certificate of a gateway there has to name."""
    return _named(files, "server_name") or host


def not_agreed(error: OSError, limit_ms: int) -> OSError:
    """What to raise for an ``error`` of a handshake that was given ``limit_ms``."""
    if isinstance(error, TimeoutError):
        return TimeoutError(f"no TLS could be agreed on in {limit_ms} ms: {_PLAIN}")
    if isinstance(error, ssl.SSLEOFError | ConnectionResetError):
        return ConnectionError(f"it hung up before TLS was agreed on: {_PLAIN}")
    return error


def in_words(error: Exception) -> str:
    """What broke a connection, or kept one from being made."""
    return what_failed(error, _PLAIN) if isinstance(error, ssl.SSLError) else str(error)


def _context(files: TlsFiles) -> ssl.SSLContext:
    certificate, key = _named(files, "certificate_file"), _named(files, "key_file")
    if key and not certificate:
        raise BadTls(f"a key for the gateway ({key}) without its certificate: set {VARIABLES['certificate_file']}")
    return client_context(_named(files, "authority_file"), certificate, key)


def _check(files: TlsFiles) -> None:
    context, name = _context(files), name_of(files, "gateway")
    try:
        context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname=name)
    except ValueError as error:  # as each connection would
        raise BadTls(f"thrift_tls_server_name: {name!r} cannot be the name in a certificate: {error}") from error


def _refuse_any(files: TlsFiles) -> None:
    for name, variable in VARIABLES.items():
        if _named(files, name):
            raise BadTls(
                f"thrift_tls_{name} ({variable}) is for a gateway that speaks TLS, and the address says nothing of "
                "that: give tls://host:port, or unset it"
            )


def _named(files: TlsFiles, name: str) -> str:
    named: str = getattr(files, name)
    return named or os.environ.get(VARIABLES[name], "")
