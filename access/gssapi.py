"""Kerberos by the system's GSSAPI library, MIT's: as much of it as a client needs (RFC 2743, RFC 2744).

Bound here by ctypes. The packages that bind it have to be compiled, against headers that hosts which speak Kerberos do
not have, while the library itself comes with whatever brings ``kinit``. It reads ``krb5.conf``, finds the realm and its
KDC, fetches tickets and renews them by itself; of all that nothing is done here.

The invariant: whatever the library allots is given back, by ``_Buffer`` at once, else when its owner goes.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable
from typing import Any, Final

LIBRARY: Final = "libgssapi_krb5.so.2"
_CONTINUE_NEEDED: Final = 1
_ERROR_SHIFT: Final = 16
_INITIATE: Final = 1
_STATUS_OF_GSSAPI, _STATUS_OF_MECHANISM = 1, 2
_MUTUAL, _REPLAY, _SEQUENCE, _CONFIDENTIALITY, _INTEGRITY = 2, 4, 8, 16, 32
_WANTED: Final = _MUTUAL | _REPLAY | _SEQUENCE | _CONFIDENTIALITY | _INTEGRITY
_STATUS_LINES_MAX: Final = 8
_KERBEROS: Final = bytes.fromhex("2a864886f712010202")  # 1.2.840.113554.1.2.2
_HOST_BASED_SERVICE: Final = bytes.fromhex("2a864886f71201020104")  # 1.2.840.113554.1.2.1.4
_MEMORY: Final = b"MEMORY:pythia"

_Status = ctypes.c_uint32
_Handle = ctypes.c_void_p


class KerberosUnavailable(Exception):
    """The library is not there."""


class KerberosFailure(Exception):
    """What the library says of a step that failed."""


class _Buffer(ctypes.Structure):
    _fields_ = (("length", ctypes.c_size_t), ("value", ctypes.c_void_p))
    kept: bytes

    @classmethod
    def of(cls, data: bytes) -> _Buffer:
        """Of bytes that the buffer itself keeps alive."""
        made = cls(len(data), ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p))
        made.kept = data
        return made


class _Oid(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint32), ("elements", ctypes.c_char_p))


class _KeyValue(ctypes.Structure):
    _fields_ = (("key", ctypes.c_char_p), ("value", ctypes.c_char_p))


class _CredentialStore(ctypes.Structure):
    _fields_ = (("count", ctypes.c_uint32), ("elements", ctypes.POINTER(_KeyValue)))


_MECHANISM: Final = _Oid(len(_KERBEROS), _KERBEROS)
_NAME_OF_SERVICE: Final = _Oid(len(_HOST_BASED_SERVICE), _HOST_BASED_SERVICE)


@functools.cache
def _library() -> Any:
    """Raises ``KerberosUnavailable``."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise KerberosUnavailable(
            f"Kerberos needs MIT's library {LIBRARY}, which comes with Debian's libgssapi-krb5-2 and Red Hat's "
            f"krb5-libs: {error}"
        ) from error
    pointer = ctypes.c_void_p
    for name, arguments in {
        "gss_import_name": 4 * [pointer],
        "gss_release_name": 2 * [pointer],
        "gss_acquire_cred_from": [pointer, pointer, ctypes.c_uint32, pointer, ctypes.c_int, *4 * [pointer]],
        "gss_release_cred": 2 * [pointer],
        "gss_init_sec_context": [*5 * [pointer], ctypes.c_uint32, ctypes.c_uint32, *6 * [pointer]],
        "gss_delete_sec_context": 3 * [pointer],
        "gss_wrap": [pointer, pointer, ctypes.c_int, ctypes.c_uint32, *3 * [pointer]],
        "gss_unwrap": 6 * [pointer],
        "gss_release_buffer": 2 * [pointer],
        "gss_display_status": [pointer, ctypes.c_uint32, ctypes.c_int, *3 * [pointer]],
    }.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, _Status
    return library


def require_library() -> None:
    """Raises ``KerberosUnavailable``."""
    _library()


class SecurityContext:
    """What a client and ``service`` at ``host`` agree on, step by step. For one thread at a time.

    ``principal`` and ``keytab_file`` say who the client is; without both the environment does. The first step may ask
    the KDC, and wait for it as long as ``krb5.conf`` says. Every method raises ``KerberosFailure``.
    """

    def __init__(self, service: str, host: str, *, principal: str = "", keytab_file: str = "") -> None:
        self.is_complete = False
        self._context = _Handle()
        self._credential = _Handle()
        self._target = _name(f"{service}@{host}", _NAME_OF_SERVICE)
        weakref.finalize(self, _release_all, self._context, self._credential, self._target)
        self._acquire(principal, keytab_file)

    def _acquire(self, principal: str, keytab_file: str) -> None:
        name = _name(principal, None) if principal else _Handle()
        store = None
        if keytab_file:
            # Tickets of a cache in memory go with the process, and a second connection need not ask the KDC anew.
            cache = _MEMORY + b"-%x" % (hash((principal, keytab_file)) & 0xFFFFFFFF)
            entries = (_KeyValue * 2)(_KeyValue(b"client_keytab", keytab_file.encode()), _KeyValue(b"ccache", cache))
            store = ctypes.byref(_CredentialStore(2, entries))
        try:
            _call("gss_acquire_cred_from", name, 0, None, _INITIATE, store, ctypes.byref(self._credential), None, None)
        finally:
            _release("gss_release_name", name)

    def step(self, token: bytes) -> bytes:
        """What to send after ``token`` arrived, which is empty at first."""
        flags, out = ctypes.c_uint32(), _Buffer()
        major = _call(
            "gss_init_sec_context",
            self._credential,
            ctypes.byref(self._context),
            self._target,
            ctypes.byref(_MECHANISM),
            _WANTED,
            0,
            None,
            ctypes.byref(_Buffer.of(token)) if token else None,
            None,
            ctypes.byref(out),
            ctypes.byref(flags),
            None,
        )
        to_send = _taken(out)
        self.is_complete = not major & _CONTINUE_NEEDED
        if self.is_complete and not flags.value & _MUTUAL:
            raise KerberosFailure("the other side has not shown who it is")
        return to_send

    def wrap(self, data: bytes, *, confidential: bool) -> bytes:
        """``data`` so that nobody on the way can change it, or read it."""
        state, out = ctypes.c_int(), _Buffer()
        given = _Buffer.of(data)
        _call("gss_wrap", self._context, confidential, 0, ctypes.byref(given), ctypes.byref(state), ctypes.byref(out))
        sealed = _taken(out)
        if confidential and not state.value:
            raise KerberosFailure("it cannot encrypt")
        return sealed

    def unwrap(self, data: bytes, *, confidential: bool) -> bytes:
        """What the other side wrapped, each once and in its order; what it should have encrypted and did not is an
        error.
        """
        state, out = ctypes.c_int(), _Buffer()
        given = _Buffer.of(data)
        major = _call("gss_unwrap", self._context, ctypes.byref(given), ctypes.byref(out), ctypes.byref(state), None)
        opened = _taken(out)
        if major:
            raise KerberosFailure("what it sent came twice, or in another order than it was sent")
        if confidential and not state.value:
            raise KerberosFailure("it sent in clear text what was to be encrypted")
        return opened


def _name(text: str, kind: _Oid | None) -> _Handle:
    made, given = _Handle(), _Buffer.of(text.encode())
    _call("gss_import_name", ctypes.byref(given), None if kind is None else ctypes.byref(kind), ctypes.byref(made))
    return made


def _call(function: str, *arguments: Any) -> int:
    """The status. Raises ``KerberosFailure``."""
    minor = _Status()
    call: Callable[..., int] = getattr(_library(), function)
    major = call(ctypes.byref(minor), *arguments)
    if major >> _ERROR_SHIFT:
        raise KerberosFailure(_in_words(major, minor.value))
    return major


def _release(function: str, handle: _Handle, *arguments: Any) -> None:
    if handle:
        getattr(_library(), function)(ctypes.byref(_Status()), ctypes.byref(handle), *arguments)


def _release_all(context: _Handle, credential: _Handle, target: _Handle) -> None:
    _release("gss_delete_sec_context", context, None)
    _release("gss_release_cred", credential)
    _release("gss_release_name", target)


def _taken(out: _Buffer) -> bytes:
    """The bytes of a buffer of the library's, which gets it back."""
    try:
        return ctypes.string_at(out.value, out.length) if out.length else b""
    finally:
        _library().gss_release_buffer(ctypes.byref(_Status()), ctypes.byref(out))


def _in_words(major: int, minor: int) -> str:
    """What the mechanism says of it, which is more to the point, or else what GSSAPI does."""
    said = _lines(minor, _STATUS_OF_MECHANISM) if minor else ""
    return said or _lines(major, _STATUS_OF_GSSAPI)


def _lines(status: int, kind: int) -> str:
    more, lines = ctypes.c_uint32(), list[str]()
    for _ in range(_STATUS_LINES_MAX):
        out = _Buffer()
        major = _library().gss_display_status(
            ctypes.byref(_Status()), status, kind, ctypes.byref(_MECHANISM), ctypes.byref(more), ctypes.byref(out)
        )
        lines.append(_taken(out).decode("utf-8", "replace"))
        if major or not more.value:
            break
    return "; ".join(filter(None, lines))
