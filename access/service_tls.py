"""TLS on the way to ZooKeeper and to HBase's gateway: whom a client believes there, and what it shows of itself.

Neither is ours: what speaks TLS for them is a server of their own or something that stands before them. It may ask for
a certificate, and so keep everybody else out.

The invariant: whether a connection is TLS is said by the service's address alone (``tls://``), and what an address says
is never spoken around: files without it are an error, and no file leads to clear text.
"""

from __future__ import annotations

import os
import ssl
from typing import Final

from access.services import TLS, TlsFiles
from access.tls import BadTls, client_context, what_failed

HUNG_UP: Final = (ssl.SSLEOFError, BrokenPipeError, ConnectionResetError)
"""What a socket meets where the other side has hung up. Which of them, and whether as it sends or as it receives, is
for the network to say, and for TLS.
"""
_PLAIN: Final = "where it listens in clear text, its address has no tls://"


def checked(files: TlsFiles, service: str, *, spoken: bool) -> TlsFiles:
    """``files`` with what the environment says of them. ``spoken``: whether the service's addresses say TLS.

    Raises ``BadTls`` for files that cannot be used, or are there though no address says TLS.
    """
    found = files.completed(os.environ, service)
    if not spoken:
        if words := found.unspoken(service, "speaks TLS", TLS):
            raise BadTls(words)
        return found
    if found.key_file and not found.certificate_file:
        raise BadTls(
            f"a key ({found.key_file}) without its certificate: set {TlsFiles.variable(service, 'certificate_file')}"
        )
    context, name = _context(found), found.server_name or "localhost"
    try:
        context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname=name)
    except ValueError as error:  # as each connection would
        setting = TlsFiles.setting(service, "server_name")
        raise BadTls(f"{setting}: {name!r} cannot be the name in a certificate: {error}") from error
    return found


def context_for_connection(files: TlsFiles) -> ssl.SSLContext:
    """For the next one. Raises ``ConnectionError`` where files cannot be used, which somebody may be replacing."""
    try:
        return _context(files)
    except BadTls as error:
        raise ConnectionError(str(error)) from error


def not_agreed(error: OSError, limit_ms: int) -> OSError:
    """What to raise for an ``error`` of a handshake that was given ``limit_ms``."""
    if isinstance(error, TimeoutError):
        return TimeoutError(f"no TLS could be agreed on in {limit_ms} ms: {_PLAIN}")
    if isinstance(error, HUNG_UP):
        return ConnectionError(f"it hung up before TLS was agreed on: {_PLAIN}")
    return error


def in_words(error: Exception) -> str:
    """What broke a connection, or kept one from being made."""
    return what_failed(error, _PLAIN) if isinstance(error, ssl.SSLError) else str(error)


def _context(files: TlsFiles) -> ssl.SSLContext:
    return client_context(files.authority_file, files.certificate_file, files.key_file)
