"""Values of leading row key columns, as a JSON list in an option: ``["2013-07-04", "AA"]``. Pure.

JSON has no dates, times or bytes: a date or time is written as ISO 8601, a ``timestamp`` with its zone, bytes in
hexadecimal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, Final

from client.spark.errors import InvalidData, InvalidOption
from client.spark.key_codec import key_part, placed
from client.spark.mapping import KeyColumn, TableMapping

_FROM_TEXT: Final[Mapping[str, Callable[[str], Any]]] = {
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "timestamp_ntz": datetime.fromisoformat,
    "binary": bytes.fromhex,
}


def key_prefixes(mapping: TableMapping, option: str, text: str) -> tuple[bytes, ...]:
    """The bytes with which the row keys begin whose leading columns have these values; of a salted table several.

    Raises ``InvalidOption``, which names ``option``, for text that is no such list.
    """
    try:
        values = json.loads(text)
        if not isinstance(values, list) or not 1 <= len(values) <= len(mapping.row_key):
            raise ValueError(f"the row key has the columns {', '.join(mapping.row_key)}")
        columns = mapping.key_columns[: len(values)]
        key = b"".join(_part(column, value) for column, value in zip(columns, values, strict=True))
        return tuple(placed(mapping, key, is_whole=len(columns) == len(mapping.key_columns)))
    except (ValueError, InvalidData) as error:
        raise InvalidOption(
            f"the option {option!r} is a JSON list of values of the leading row key columns, such as "
            f'["2013-07-04", 7] (dates and times in ISO 8601, bytes in hexadecimal), not {text!r}: {error}'
        ) from error


def _part(column: KeyColumn, value: Any) -> bytes:
    convert = _FROM_TEXT.get(column.type)
    return key_part(column, convert(value) if convert is not None and isinstance(value, str) else value)
