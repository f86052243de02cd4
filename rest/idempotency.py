"""The same answer for the same `Idempotency-Key`, within bounded memory.

The invariant: of requests with one key the work is done once, as long as the key is remembered. An answer that says
that nothing was done, or that it is not known what was, is not remembered: such a request may be sent again. Keys are
their caller's: what one asks takes no room of one who has less here. (After the draft "The Idempotency-Key HTTP Header
Field" of the IETF's httpapi group.)

What is beyond this memory needs none of it: a commit is the same commit by its transaction's id, for good.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

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


@dataclass(eq=False, slots=True)
class _Shelf:
    """What is remembered for one caller."""

    entries: OrderedDict[str, _Entry] = field(default_factory=OrderedDict)
    size_bytes: int = 0

    def drop_oldest(self) -> bool:
        """Forget the oldest answer; whether there was one."""
        for key, entry in self.entries.items():
            if entry.answer.done():
                del self.entries[key]
                self.size_bytes -= entry.size_bytes
                return True
        return False


class IdempotentAnswers:
    """Belongs to one event loop."""

    def __init__(self, keys_max: int, bytes_max: int, retry_after_ms: int) -> None:
        self._keys_max = keys_max
        self._bytes_max = bytes_max
        self._retry_after_ms = retry_after_ms
        self._shelves: dict[str, _Shelf] = {}

    def __len__(self) -> int:
        return sum(len(shelf.entries) for shelf in self._shelves.values())

    async def once(self, caller: str, key: str, request: bytes, work: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer of ``work``, or of the request that ``caller`` sent with this key before. Raises ``Problem``.

        ``request``: what must be the same for the answer to be. Work that raises is not remembered.
        """
        fingerprint = hashlib.sha256(request).digest()
        shelf = self._shelves.get(caller)
        entry = None if shelf is None else shelf.entries.get(key)
        if entry is None:
            return await self._first(caller, key, fingerprint, work)
        if entry.fingerprint != fingerprint:
            raise Problem("idempotency-key-reused", "the Idempotency-Key has come with another path or body before")
        if not entry.answer.done():  # the other request is being worked on
            await asyncio.wait([entry.answer])
        if entry.answer.cancelled():
            return await self.once(caller, key, request, work)
        return entry.answer.result()

    async def _first(self, caller: str, key: str, fingerprint: bytes, work: Callable[[], Awaitable[Answer]]) -> Answer:
        self._make_room()
        shelf = self._shelves.setdefault(caller, _Shelf())
        entry = shelf.entries[key] = _Entry(fingerprint, asyncio.get_running_loop().create_future())
        try:
            answer = await work()
        except BaseException:
            del shelf.entries[key]
            entry.answer.cancel()
            self._clear_away()
            raise
        entry.size_bytes = len(answer.body) + len(key) + _ENTRY_OVERHEAD_BYTES
        shelf.size_bytes += entry.size_bytes
        entry.answer.set_result(answer)
        while sum(shelf.size_bytes for shelf in self._shelves.values()) > self._bytes_max:
            if not self._drop_of_largest(lambda shelf: shelf.size_bytes):
                break
        return answer

    def _make_room(self) -> None:
        """Raises ``Problem`` where all that is remembered is under way."""
        if len(self) >= self._keys_max and not self._drop_of_largest(lambda shelf: len(shelf.entries)):
            raise Problem(
                "overloaded",
                "too many requests with an Idempotency-Key are under way",
                retry_after_ms=self._retry_after_ms,
            )

    def _drop_of_largest(self, size: Callable[[_Shelf], int]) -> bool:
        """Forget the oldest answer of the caller who has most: nobody's answers go for what others ask."""
        dropped = any(shelf.drop_oldest() for shelf in sorted(self._shelves.values(), key=size, reverse=True))
        self._clear_away()
        return dropped

    def _clear_away(self) -> None:
        self._shelves = {caller: shelf for caller, shelf in self._shelves.items() if shelf.entries}
