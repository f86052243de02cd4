"""In whose name a request runs: what a caller opens and asks for belongs to the name of its token."""

from __future__ import annotations

from contextvars import ContextVar

CALLER: ContextVar[str] = ContextVar("caller", default="")
"""The name of the token of the request under way; empty where no tokens are asked for."""
