"""TLS for both ends: contexts from files, and the server's made anew when its files change.

The invariant: nothing below TLS 1.2; a client checks the server's certificate and name, always. A file that cannot be
used leaves the context in force that was before, and is told of in the log.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from typing import Final

from access.changes import FileChanges
from access.server_files import ServerFiles

log = logging.getLogger(__name__)

HANDSHAKE_BEGIN: Final = b"\x16\x03"
"""What a TLS client sends first, of whatever version."""


_PLAIN_ORACLE: Final = "unset tls_authority_file (PYTHIA_CLIENT_TLS_AUTHORITY_FILE), or give the oracle a certificate"


class BadTls(ValueError):
    """Files that no TLS can be made of; the text says which and why."""


def server_context(files: ServerFiles, *, tells_why: bool = False) -> ssl.SSLContext:
    """For one server. ``tells_why``: it looks itself whether a client has shown a certificate, so that it can say that
    one is needed; a certificate that is wrong ends the handshake all the same. Raises ``BadTls``.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load_certificate(context, files.certificate, files.key)
    if files.client_authority:
        _load_authority(context, files.client_authority)
        context.verify_mode = ssl.CERT_OPTIONAL if tells_why else ssl.CERT_REQUIRED
        # A resumed session shows no certificate again, also once another authority is asked for.
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
    return context


class ServerTls:
    """The context in force. ``now_s`` is a monotonic clock's. Raises ``BadTls`` where there can be none at first."""

    def __init__(self, files: ServerFiles, now_s: float, *, tells_why: bool = False) -> None:
        self._files = files
        self._tells_why = tells_why
        self._changes = FileChanges(
            [path for path in (files.certificate, files.key, files.client_authority) if path], now_s
        )
        self._context = self._made()

    def context(self, now_s: float) -> ssl.SSLContext:
        """For the next connection; now and then it is looked whether the files have changed. Raises nothing."""
        if self._changes.to_read(now_s):
            self._read_again()
        return self._context

    def renewing(self, clock_s: Callable[[], float]) -> ssl.SSLContext:
        """A context that gives each connection the files of the moment, for servers that keep one for good."""

        def choose(connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
            connection.context = self.context(clock_s())

        first = self._made()
        first.sni_callback = choose  # called for each handshake, also where no name is given
        return first

    @property
    def is_mutual(self) -> bool:
        """Whether clients have to show certificates."""
        return bool(self._files.client_authority)

    def _made(self) -> ssl.SSLContext:
        return server_context(self._files, tells_why=self._tells_why)

    def _read_again(self) -> None:
        """What cannot be used now is tried again at each look: a renewal may have written half of its files so far."""
        try:
            self._context = self._made()
        except BadTls as error:
            if self._changes.failed(str(error)):
                log.error("TLS goes on with the files that were there before: %s", str(error))
        else:
            log.warning("TLS: %s was read again", self._files.certificate)


def client_context(authority: str, certificate: str = "", key: str = "") -> ssl.SSLContext:
    """For a client that believes ``authority``, or, where that is empty, those that the system does; and shows a
    certificate where one is given. Raises ``BadTls``.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # checks certificate and name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if authority:
        _load_authority(context, authority)
    else:
        context.load_default_certs()
    if certificate:
        _load_certificate(context, certificate, key or certificate)
    return context


def what_failed(error: ssl.SSLError, plain: str = _PLAIN_ORACLE) -> str:
    """What a failed opening means to a client, in words. ``plain``: what to do where the other side speaks no TLS."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message or error.reason}"
    if error.reason in ("WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL"):
        return f"it does not speak TLS: {plain}"
    if error.reason is not None and "ALERT" in error.reason:
        return f"it refused the TLS of this client ({error.reason}): does it accept the certificate that is shown?"
    return f"no TLS could be agreed on: {error.reason or error}"


def _load_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    def no_password() -> str:
        raise BadTls(f"the key {key} has a password: give one without, readable by its owner alone")

    try:
        context.load_cert_chain(certificate, key, no_password)
    except (OSError, ssl.SSLError) as error:
        raise BadTls(f"certificate {certificate} with key {key}: {_why(error)}") from error


def _load_authority(context: ssl.SSLContext, path: str) -> None:
    try:
        context.load_verify_locations(path)
    except (OSError, ssl.SSLError) as error:
        raise BadTls(f"authority {path}: {_why(error)}") from error


def _why(error: OSError) -> str:
    reason = error.reason if isinstance(error, ssl.SSLError) else error.strerror
    return str(reason or error)
