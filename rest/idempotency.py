"""The same answer for the same `Idempotency-Key`, within bounded memory.

The invariant: of requests with one key the work is done once, as long as the key is remembered. An answer that says
that nothing was done, or that it is not known what was, is not remembered: such a request may be sent again. (After the
draft "The Idempotency-Key HTTP Header Field" of the IETF's httpapi group.)

What is beyond this memory needs none of it: a commit is the same commit by its transaction's id, for good.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from rest.problems import Problem

KEY_CHARACTERS_MAX = 255
_ENTRY_OVERHEAD_BYTES = 500


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request was answered with."""

    status: int
    body: bytes
    media_type: str = "application/json"


@dataclass(eq=False, slots=True)
class _Entry:
    fingerprint: bytes
    answer: asyncio.Future[Answer]
    size_bytes: int = 0


class IdempotentAnswers:
    """Belongs to one event loop."""

    def __init__(self, keys_max: int, bytes_max: int, retry_after_ms: int) -> None:
        self._keys_max = keys_max
        self._bytes_max = bytes_max
        self._retry_after_ms = retry_after_ms
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    async def once(self, key: str, request: bytes, work: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer of ``work``, or of the request that came with this key before. Raises ``Problem``.

        ``request``: what must be the same for the answer to be. Work that raises is not remembered.
        """
        fingerprint = hashlib.sha256(request).digest()
        entry = self._entries.get(key)
        if entry is None:
            return await self._first(key, fingerprint, work)
        if entry.fingerprint != fingerprint:
            raise Problem("idempotency-key-reused", "the Idempotency-Key has come with another path or body before")
        if not entry.answer.done():  # the other request is being worked on
            await asyncio.wait([entry.answer])
            return await self.once(key, request, work)
        return entry.answer.result()

    async def _first(self, key: str, fingerprint: bytes, work: Callable[[], Awaitable[Answer]]) -> Answer:
        self._make_room()
        entry = _Entry(fingerprint, asyncio.get_running_loop().create_future())
        self._entries[key] = entry
        try:
            answer = await work()
        except BaseException:
            del self._entries[key]
            entry.answer.cancel()
            raise
        entry.size_bytes = len(answer.body) + len(key) + _ENTRY_OVERHEAD_BYTES
        self._bytes += entry.size_bytes
        entry.answer.set_result(answer)
        self._drop_oldest()
        return answer

    def _make_room(self) -> None:
        """Raises ``Problem`` where all that is remembered is under way."""
        if len(self._entries) < self._keys_max:
            return
        for key, entry in self._entries.items():
            if entry.answer.done():
                self._drop(key)
                return
        raise Problem(
            "overloaded", "too many requests with an Idempotency-Key are under way", retry_after_ms=self._retry_after_ms
        )

    def _drop_oldest(self) -> None:
        done = (
            [key for key, entry in self._entries.items() if entry.answer.done()]
            if self._bytes > self._bytes_max
            else []
        )
        for key in done:
            if self._bytes <= self._bytes_max:
                return
            self._drop(key)

    def _drop(self, key: str) -> None:
        self._bytes -= self._entries.pop(key).size_bytes
