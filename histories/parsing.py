"""Reading values out of JSON that may be anything, with errors that say what was expected. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from histories.errors import HistoryError


def parse_json(text: str) -> Any:
    """What the text says. Raises ``HistoryError`` where it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise HistoryError(f"not JSON: {error}") from error


def record(value: Any, *, needed: set[str], optional: frozenset[str] = frozenset()) -> Mapping[str, Any]:
    """A JSON object with the ``needed`` names, and perhaps the ``optional`` ones."""
    if not isinstance(value, dict):
        raise HistoryError(f"a JSON object is needed here, not {_shown(value)}")
    missing, unknown = sorted(needed - set(value)), sorted(set(value) - needed - optional)
    if missing or unknown:
        wrong = [f"{', '.join(missing)} missing"] * bool(missing) + [f"unknown {', '.join(unknown)}"] * bool(unknown)
        raise HistoryError(f"{'; '.join(wrong)} in {_shown(value)}")
    return value


def array(value: Any, what: str) -> Sequence[Any]:
    """A JSON array."""
    if not isinstance(value, list):
        raise HistoryError(f"{what}: a JSON array is needed, not {_shown(value)}")
    return value


def whole(value: Any, what: str) -> int:
    """A whole number. ``True`` is none."""
    if type(value) is not int:
        raise HistoryError(f"{what}: a whole number is needed, not {_shown(value)}")
    return value


def whole_or_none(value: Any, what: str) -> int | None:
    """A whole number or null."""
    return None if value is None else whole(value, what)


def text(value: Any, what: str) -> str:
    """A string."""
    if not isinstance(value, str):
        raise HistoryError(f"{what}: a string is needed, not {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 100 else f"{shown[:100]}…"
