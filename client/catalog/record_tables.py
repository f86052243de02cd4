"""Tables of records that are written in the very transactions that they tell of: how far imports and streams have come,
and which keys have landed.

Transactions write them, so they have entries as any table has. But nobody names them, saves them or puts them back.
Pure.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from client.catalog.entry import CatalogEntry, ConflictLevel
from client.errors import InvalidRequest
from versions import Format, FormatNotSpoken


class RecordTable(NamedTuple):
    """One such table of each installation; ``purpose`` is what its name ends with."""

    purpose: str
    family: str
    conflict_level: ConflictLevel

    @property
    def entry(self) -> CatalogEntry:
        """What is agreed on about it."""
        return CatalogEntry(self.conflict_level, (self.family,))


IMPORTS: Final = RecordTable("imports", "i", "cell")
STREAMS: Final = RecordTable("streams", "b", "row")
CLAIMS: Final = RecordTable("claims", "c", "row")
RECORD_TABLES: Final = (IMPORTS, STREAMS, CLAIMS)


def fields_of(value: bytes, written_as: Format, what: str, *names: str) -> list[Any]:
    """These fields of a record that is JSON and says its format. ``what`` it tells of completes "no record of".

    Raises ``InvalidRequest`` for anything else, newer formats included.
    """
    try:
        fields = json.loads(value)
        written_as.require_known(fields["format"])
        return [fields[name] for name in names]
    except FormatNotSpoken as error:
        raise InvalidRequest(str(error)) from None
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidRequest(f"this is no record of {what} ({error!r}): {value[:200]!r}") from error
