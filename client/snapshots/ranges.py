"""Ranges of row keys, as callers name them. Pure."""

from __future__ import annotations

from client.errors import InvalidRequest
from store import KeyRange


def key_range(start: bytes, stop: bytes, prefix: bytes) -> KeyRange:
    """The rows from ``start`` up to but not including ``stop`` (``b""``: the end), or those that begin with ``prefix``.

    Raises ``InvalidRequest`` where both are given, or a bound is not bytes.
    """
    for name, bound in (("start", start), ("stop", stop), ("prefix", prefix)):
        if not isinstance(bound, bytes):
            raise InvalidRequest(f"{name} is bytes, not {type(bound).__name__}: encode it")
    if not prefix:
        if stop and stop < start:
            raise InvalidRequest(f"stop {stop!r} lies before start {start!r}: no row can be meant")
        return KeyRange(start, stop)
    if start or stop:
        raise InvalidRequest("give either prefix, or start and stop")
    return KeyRange(prefix, end_of_prefix(prefix))


def end_of_prefix(prefix: bytes) -> bytes:
    """The first key behind all keys that begin with ``prefix``; ``b""`` where there is none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,)) if kept else b""
