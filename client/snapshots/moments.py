"""How a moment of the past is written: a timestamp, a time with its zone, or the name of a snapshot. Pure.

The invariant: a text means one of the three, never two. A name begins with a letter, the others with a digit.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from client.errors import InvalidRequest
from commit_table.timestamps import TIMESTAMP_MAX, milliseconds_of

SINCE_THE_BEGINNING: Final = 0
"""In place of an earlier moment, where it is asked what has changed: everything there is, and nothing that is not."""

Moment = int | datetime | str
"""A timestamp, a time with its zone, or a text that means either, or the name of a snapshot."""

NAME_CHARACTERS_MAX: Final = 100
_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9._-]{{0,{NAME_CHARACTERS_MAX - 1}}}")
_EXAMPLE: Final = "2013-07-04T12:00:00Z or 2013-07-04 12:00:00.250-04:00"
_FIRST_MOMENT_MS: Final = 31_536_000_000
"""The start of 1971. Milliseconds of today, taken for a timestamp, are two hours of 1970."""


def validate_name(name: str) -> None:
    """Raise ``InvalidRequest`` for what cannot be a snapshot's name."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"a snapshot's name is a letter, followed by up to {NAME_CHARACTERS_MAX - 1} letters, digits, dots, "
            f"underscores and hyphens, as in 'before-migration' or 'end-of-2026'; not {name!r}"
        )


def parse_moment(text: str) -> Moment:
    """What a text names, as ``manager.snapshot`` takes it. Raises ``InvalidRequest``."""
    text = text.strip()
    if _NAME.fullmatch(text):
        return text
    if re.fullmatch(r"[0-9]{1,19}", text):
        timestamp = int(text)
        require_timestamp(timestamp)
        return timestamp
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.utcoffset() is None:
        raise InvalidRequest(
            f"a moment is a timestamp of Pythia's, the name of a snapshot, or a time with its zone such as {_EXAMPLE}, "
            f"not {text!r}"
        )
    return moment


def parse_since(text: str) -> Moment:
    """What a text names from which on changes are asked for: a moment, or the beginning. Raises ``InvalidRequest``."""
    return SINCE_THE_BEGINNING if text.strip() == str(SINCE_THE_BEGINNING) else parse_moment(text)


def require_timestamp(timestamp: int) -> None:
    """Raise ``InvalidRequest`` for what no oracle ever gave."""
    if type(timestamp) is not int or not 0 < timestamp < TIMESTAMP_MAX:
        raise InvalidRequest(f"a moment is a timestamp (from 1 to 2**63 - 2) or a datetime, not {timestamp!r}")
    if milliseconds_of(timestamp) < _FIRST_MOMENT_MS:
        raise InvalidRequest(
            f"the timestamp {timestamp} is of the year 1970: seconds or milliseconds since then are no timestamps of "
            f"Pythia's; give a time with its zone such as {_EXAMPLE}"
        )
