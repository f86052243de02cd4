"""What the JSON of a body says: each name of an object once.

The invariant: nothing that a body says is overlooked. Of two values under one name a reader of JSON keeps the last, and
the other would be lost without a word.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute


class RouteOfPlainObjects(APIRoute):
    """A route whose requests have no object with a name twice."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """As any route's, with a request that reads its body so."""
        handler = super().get_route_handler()

        async def handle_plain(request: Request) -> Response:
            return await handler(_Request(request.scope, request.receive))

        return handle_plain


class _Request(Request):
    async def json(self) -> Any:
        """Raises ``ValueError``, which FastAPI has answered as it does what is no JSON."""
        if not hasattr(self, "_json"):
            self._json = json.loads(await self.body(), object_pairs_hook=_plain)
        return self._json


def _plain(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counted = Counter(name for name, _ in pairs)  # a body may have a hundred thousand names
        twice = next(name for name, times in counted.items() if times > 1)
        raise ValueError(f"the name {twice[:80]!r} comes more than once in an object")
    return found
