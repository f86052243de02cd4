"""What is agreed on about one table, as a value. Pure.

A name that HBase does not take is refused here, by the store's own rule, before anything is asked of it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from client.errors import InvalidRequest
from store import Family, InvalidCell
from store.validation import check_families, check_table
from versions import FormatNotSpoken
from versions.formats import CATALOG_ENTRIES

ConflictLevel = Literal["cell", "row"]
"""Whether two transactions conflict when they write the same cell, or already when they write the same row."""


_SHADOWS_BESIDE, _ADOPTED, _SHADOWS_APART = 1, 2, 3
"""The versions of stored entries."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """What is agreed on about one table. Raises ``InvalidRequest`` for what no table can have."""

    conflict_level: ConflictLevel
    families: tuple[str, ...]
    description: bytes = b""
    plain_through: int = 0
    """Of a table that was adopted: up to which HBase timestamp its cells are of programs without transactions."""
    shadows_apart: bool = False
    """Whether its shadow cells lie in a family of their own (``client.catalog.shadow_family``)."""

    def __post_init__(self) -> None:
        if self.conflict_level not in get_args(ConflictLevel):
            raise InvalidRequest(f"conflict_level is 'cell' or 'row', not {self.conflict_level!r}")
        if not isinstance(self.description, bytes):
            raise InvalidRequest(f"description is bytes, not {type(self.description).__name__}: encode it")
        try:
            check_families([Family(name) for name in self.families])
        except InvalidCell as error:
            raise InvalidRequest(str(error)) from error

    @property
    def family_columns(self) -> tuple[bytes, ...]:
        """The families as a choice of what to read."""
        return tuple(family.encode() for family in self.families)

    def unlike(self, other: CatalogEntry) -> list[str]:
        """In what two tables differ, in words. Families have no order, and how a table came to be is no difference, of
        which it is a part where its shadow cells lie.
        """
        return [
            name
            for name, one, another in (
                ("conflict level", self.conflict_level, other.conflict_level),
                ("families", set(self.families), set(other.families)),
                ("description", self.description, other.description),
            )
            if one != another
        ]

    def to_make_anew(self) -> CatalogEntry:
        """What is agreed on about a table that is made like this one: nothing of how this one came to be."""
        return CatalogEntry(self.conflict_level, self.families, self.description)

    def encode(self, made: str) -> bytes:
        """The entry as it is stored. ``made`` is used once: no later entry of the table is stored as the same bytes."""
        fields: dict[str, Any] = {
            "format": _SHADOWS_APART if self.shadows_apart else _SHADOWS_BESIDE,
            "conflict_level": self.conflict_level,
            "families": list(self.families),
            "description": base64.b64encode(self.description).decode(),
            "made": made,
        }
        if self.plain_through:  # a reader who does not know of it would show nothing of what was there
            fields |= {"format": _ADOPTED, "plain_through": self.plain_through}
        return json.dumps(fields).encode()

    @classmethod
    def parse(cls, table: str, value: bytes) -> CatalogEntry:
        """Read a stored entry; raises ``InvalidRequest`` for one that a newer version wrote."""
        fields: dict[str, Any] = json.loads(value)
        try:
            CATALOG_ENTRIES.require_known(fields.get("format"))
        except FormatNotSpoken as error:
            raise InvalidRequest(f"table {table!r}: {error}") from None
        return cls(
            conflict_level=fields["conflict_level"],
            families=tuple(fields["families"]),
            description=base64.b64decode(fields["description"]),
            plain_through=fields["plain_through"] if fields["format"] == _ADOPTED else 0,
            shadows_apart=fields["format"] == _SHADOWS_APART,
        )


class ShownFrom(NamedTuple):
    """From which snapshots on a table shows all that it had: not below its vacuum mark, nor below the fence at which a
    table of the same name had been dropped. 0: it never was.
    """

    vacuumed_below: int = 0
    dropped_below: int = 0


def family_names(families: Sequence[str]) -> tuple[str, ...]:
    """Families as a caller lists them. Raises ``InvalidRequest`` for what is no list: a single name would be taken
    apart.
    """
    if isinstance(families, (str, bytes)):
        raise InvalidRequest(f"families are a list of names, not {families!r}: write [{families!r}]")
    if not isinstance(families, Collection):
        raise InvalidRequest(f"families are a list of names, not {families!r}")
    return tuple(families)


def validate_table(table: str) -> None:
    """Raise ``InvalidRequest`` for what cannot be a table's name."""
    try:
        check_table(table)
    except InvalidCell as error:
        raise InvalidRequest(str(error)) from error
