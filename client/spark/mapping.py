"""How the columns of a DataFrame lie in the cells of a table: written once, when the table is made.

The mapping is kept as JSON in the catalog entry of its table, so that a job names the table and nothing else, and two
jobs cannot disagree about where a column lies. A mapping that exists is valid: everything is checked when it is made.

A DataFrame column is either part of the row key or has exactly one cell, ``family:qualifier``, of its own; but in a
*packed* table, where all that are not part of the row key share one cell (``client.spark.packing``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args

from pyspark.sql.types import StructField, StructType

from client.catalog.entry import ConflictLevel
from client.spark import column_types
from client.spark.errors import InvalidMapping
from store import InvalidCell
from store.validation import check_family_name, check_table
from versions import FormatNotSpoken
from versions.formats import MAPPINGS

FORMAT_VERSION: Final = 1
PACKED_FORMAT_VERSION: Final = 2
"""Of the mappings of packed tables, so that a Pythia that knows none does not take one for another table."""
PLAIN_KEY_FORMAT_VERSION: Final = 3
"""Of mappings with a plain row key, for the same reason."""
SALTED_FORMAT_VERSION: Final = 4
"""Of those with salted row keys, packed or not."""

PACKED_QUALIFIER: Final = "packed"
SALT_BUCKETS_MAX: Final = 256
"""A salt is one byte."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column that is part of the row key. ``type``: Spark's name of its type; no float, double or decimal.

    ``plain``: its value is the row key, byte by byte, as programs without this library write text; then it is a string
    or binary, and the only column of the row key.
    """

    name: str
    type: str
    plain: bool = False

    def __post_init__(self) -> None:
        _normalise_column(self)
        column_types.check_key_type(self.name, self.type)
        if self.plain and self.type not in column_types.TEXTS:
            raise InvalidMapping(
                f"row key column {self.name!r} is of type {self.type}: a plain row key is a string or binary"
            )


@dataclass(frozen=True, slots=True)
class ValueColumn:
    """A column with a cell of its own. An empty ``qualifier`` stands for the column's name."""

    name: str
    type: str
    family: str = "f"
    qualifier: str = ""

    def __post_init__(self) -> None:
        _normalise_column(self)
        object.__setattr__(self, "qualifier", self.qualifier or self.name)
        try:
            check_family_name(self.family)
        except InvalidCell as error:
            raise InvalidMapping(f"column {self.name!r}: {error}") from error
        if self.qualifier.startswith("\x00"):
            raise InvalidMapping(f"column {self.name!r}: qualifiers that start with a zero byte are reserved")

    @property
    def cell(self) -> bytes:
        """``family:qualifier`` as the store names it."""
        return f"{self.family}:{self.qualifier}".encode()


def _normalise_column(column: KeyColumn | ValueColumn) -> None:
    if not column.name:
        raise InvalidMapping("a column needs a name")
    try:
        object.__setattr__(column, "type", column_types.normalise(column.type))
    except InvalidMapping as error:
        raise InvalidMapping(f"column {column.name!r}: {error}") from None


@dataclass(frozen=True, slots=True)
class TableMapping:
    """A table for Spark.

    ``columns`` in the order in which a DataFrame shows them; ``row_key``: the names of all key columns, in the order in
    which they make up the row key (rows are sorted by it); ``conflict_level``: whether two transactions conflict when
    they write one row or one cell; ``packed``: whether all value columns of a row lie in one cell: several times as
    fast, with row-level conflicts and writes of all columns only; ``salt_buckets``: over how many places rows with
    neighbouring keys are spread (``client.spark.salting``), 2 to 256; 0: over none. Raises ``InvalidMapping``.
    """

    table: str
    row_key: tuple[str, ...]
    columns: tuple[KeyColumn | ValueColumn, ...]
    conflict_level: ConflictLevel = "row"
    packed: bool = False
    salt_buckets: int = 0

    def __post_init__(self) -> None:
        try:
            check_table(self.table)
        except InvalidCell as error:
            raise InvalidMapping(str(error)) from error
        if self.conflict_level not in get_args(ConflictLevel):
            raise InvalidMapping(f"the conflict level is 'cell' or 'row', not {self.conflict_level!r}")
        self._check_names()
        self._check_row_key()
        self._check_salts()
        self._check_cells()
        if self.packed:
            self._check_packed()

    def _check_names(self) -> None:
        seen: dict[str, str] = {}
        for column in self.columns:
            other = seen.get(column.name.lower())
            if other is not None:
                raise InvalidMapping(
                    f"columns {other!r} and {column.name!r} of table {self.table!r} have the same name"
                )
            seen[column.name.lower()] = column.name

    def _check_row_key(self) -> None:
        keys = {column.name for column in self.columns if isinstance(column, KeyColumn)}
        if not self.row_key:
            raise InvalidMapping(f"table {self.table!r} needs at least one row key column")
        for name in self.row_key:
            if name not in keys:
                raise InvalidMapping(f"row key column {name!r} of table {self.table!r} is not among its key columns")
        if len(self.row_key) != len(keys) or len(set(self.row_key)) != len(self.row_key):
            raise InvalidMapping(f"row_key of table {self.table!r} must name each key column once: {sorted(keys)}")
        if self.has_plain_row_key and (len(keys) > 1 or self.packed):
            raise InvalidMapping(
                f"the row key of table {self.table!r} is plain: then it is one column, and the table is not packed"
            )

    def _check_salts(self) -> None:
        if type(self.salt_buckets) is not int or self.salt_buckets not in (0, *range(2, SALT_BUCKETS_MAX + 1)):
            raise InvalidMapping(
                f"the row keys of table {self.table!r} are salted over 2 to {SALT_BUCKETS_MAX} buckets, or with 0 over "
                f"none; not {self.salt_buckets!r}"
            )
        if self.salt_buckets and self.has_plain_row_key:
            raise InvalidMapping(f"the row key of table {self.table!r} is plain: then it has no salt before it")

    def _check_cells(self) -> None:
        if not self.value_columns:
            raise InvalidMapping(f"table {self.table!r} needs at least one column that is not part of the row key")
        seen: dict[bytes, str] = {}
        for column in self.value_columns:
            other = seen.setdefault(column.cell, column.name)
            if other != column.name:
                cell = column.cell.decode()
                raise InvalidMapping(f"columns {other!r} and {column.name!r} of {self.table!r} share the cell {cell!r}")

    def _check_packed(self) -> None:
        if self.conflict_level != "row":
            raise InvalidMapping(f"table {self.table!r} is packed: its conflict level is 'row', as a row is one cell")
        if len(self.families) > 1:
            families = ", ".join(self.families)
            raise InvalidMapping(f"table {self.table!r} is packed: its columns have one family, not {families}")

    @property
    def cells(self) -> tuple[bytes, ...]:
        """Every cell that a row of the table may have, the row marker aside."""
        if self.packed:
            return (f"{self.families[0]}:{PACKED_QUALIFIER}".encode(),)
        return tuple(column.cell for column in self.value_columns)

    def cells_of(self, names: Sequence[str]) -> tuple[bytes, ...]:
        """The cells in which the value columns among ``names`` lie. Raises ``InvalidMapping`` for a name it lacks."""
        chosen = [column for column in self.choose(names) if isinstance(column, ValueColumn)]
        if self.packed:
            return self.cells if chosen else ()
        return tuple(column.cell for column in chosen)

    @property
    def key_columns(self) -> tuple[KeyColumn, ...]:
        """In the order of the row key."""
        keys = {column.name: column for column in self.columns if isinstance(column, KeyColumn)}
        return tuple(keys[name] for name in self.row_key)

    @property
    def has_plain_row_key(self) -> bool:
        """Whether the row key is the bytes of its column as they are."""
        return any(column.plain for column in self.key_columns)

    @property
    def value_columns(self) -> tuple[ValueColumn, ...]:
        """In the order of the DataFrame."""
        return tuple(column for column in self.columns if isinstance(column, ValueColumn))

    @property
    def families(self) -> tuple[str, ...]:
        """Each column family once, in the order of its first column."""
        return tuple(dict.fromkeys(column.family for column in self.value_columns))

    @classmethod
    def from_schema(
        cls,
        table: str,
        schema: StructType,
        *,
        row_key: Sequence[str],
        family: str = "f",
        families: Mapping[str, str] | None = None,
        conflict_level: ConflictLevel = "row",
        packed: bool = False,
        plain_row_key: bool = False,
        salt_buckets: int = 0,
    ) -> TableMapping:
        """The mapping of a DataFrame's schema: each column that is not in ``row_key`` gets the cell ``family:name``.

        ``families`` names another family for some columns; ``plain_row_key``: see ``KeyColumn``. Raises
        ``InvalidMapping``, also for a column that ``row_key`` or ``families`` names and the schema lacks.
        """
        chosen = dict(families or {})
        for name in [*row_key, *chosen]:
            if name not in schema.fieldNames():
                raise InvalidMapping(f"unknown column {name!r}; the schema has {', '.join(schema.fieldNames())}")
        for name in row_key:
            if name in chosen:
                raise InvalidMapping(f"column {name!r} is part of the row key and has no family")
        columns = tuple(
            KeyColumn(field.name, field.dataType.simpleString(), plain_row_key)
            if field.name in row_key
            else ValueColumn(field.name, field.dataType.simpleString(), chosen.get(field.name, family))
            for field in schema.fields
        )
        return cls(table, tuple(row_key), columns, conflict_level, packed, salt_buckets)

    def to_struct(self, names: Sequence[str] | None = None) -> StructType:
        """The DataFrame's schema, or of ``names`` only (in the mapping's order; Spark's rule: case does not matter)."""
        chosen = self.columns if names is None else self.choose(names)
        return StructType(
            [
                StructField(column.name, column_types.spark_type(column.type), isinstance(column, ValueColumn))
                for column in chosen
            ]
        )

    def choose(self, names: Sequence[str]) -> tuple[KeyColumn | ValueColumn, ...]:
        """The columns of these names, in the mapping's order. Raises ``InvalidMapping`` for a name it lacks."""
        known = {column.name.lower() for column in self.columns}
        unknown = [name for name in names if name.lower() not in known]
        if unknown:
            have = ", ".join(column.name for column in self.columns)
            raise InvalidMapping(f"table {self.table!r} has no column {', '.join(unknown)}; it has {have}")
        wanted = {name.lower() for name in names}
        return tuple(column for column in self.columns if column.name.lower() in wanted)

    def check_writable(self, schema: StructType) -> None:
        """Raise ``InvalidMapping`` that names every column in which a DataFrame to be written does not fit.

        It needs the row key, and value columns: some of them, of which alone something is written then; all of them in
        a packed table.
        """
        needed = self.columns if self.packed else self.key_columns
        problems = self._differences(schema) + self._missing(schema, needed)
        if not problems and len(schema.fields) == len(self.row_key):
            problems = ["it has no column but the row key: select at least one more, or delete with operation=delete"]
        self._refuse(problems, "the DataFrame does not fit")

    def check_replacing(self, schema: StructType) -> None:
        """Raise ``InvalidMapping`` unless a DataFrame has every column: it is to replace rows as a whole."""
        problems = self._differences(schema) + self._missing(schema, self.columns)
        self._refuse(problems, "the DataFrame does not fit")

    def check_keys(self, schema: StructType) -> None:
        """Raise ``InvalidMapping`` unless a DataFrame has the columns of the row key and no others."""
        keys = {name.lower() for name in self.row_key}
        problems = self._differences(schema) + self._missing(schema, self.key_columns)
        others = [field.name for field in schema.fields if field.name.lower() not in keys]
        if others and not problems:
            keys_only = ", ".join(map(repr, self.row_key))
            problems = [f"rows are deleted by their row key, without {', '.join(others)}: use .select({keys_only})"]
        self._refuse(problems, "the DataFrame does not fit")

    def _missing(self, schema: StructType, needed: Sequence[KeyColumn | ValueColumn]) -> list[str]:
        present = {field.name.lower() for field in schema.fields}
        missing = [column for column in needed if column.name.lower() not in present]
        return [f"column {column.name!r} ({column.type}) is missing" for column in missing]

    def check_readable(self, schema: StructType) -> None:
        """Raise ``InvalidMapping`` unless a schema asked for is some of the table's columns with their types."""
        self._refuse(self._differences(schema), "the schema asked for does not fit")

    def _differences(self, schema: StructType) -> list[str]:
        types = {column.name.lower(): column.type for column in self.columns}
        problems = []
        for field in schema.fields:
            found, wanted = field.dataType.simpleString(), types.get(field.name.lower())
            if wanted is None:
                problems.append(f"column {field.name!r} ({found}) is not in the table")
            elif found != wanted:
                problems.append(f"column {field.name!r} is {found}, the table has {wanted} (use .cast({wanted!r}))")
        return problems + _repeated(schema)

    def _refuse(self, problems: Sequence[str], what: str) -> None:
        if problems:
            raise InvalidMapping(f"{what} table {self.table!r}: {'; '.join(problems)}")

    def _format_version(self) -> int:
        if self.salt_buckets:
            return SALTED_FORMAT_VERSION
        if self.has_plain_row_key:
            return PLAIN_KEY_FORMAT_VERSION
        return PACKED_FORMAT_VERSION if self.packed else FORMAT_VERSION

    def to_json(self) -> str:
        """For the catalog; read back by ``from_json``."""
        fields = {
            "format": self._format_version(),
            "table": self.table,
            "conflict_level": self.conflict_level,
            "row_key": list(self.row_key),
            "columns": [_column_to_dict(column) for column in self.columns],
        }
        if self.salt_buckets:
            fields |= {"packed": self.packed, "salt_buckets": self.salt_buckets}
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> TableMapping:
        """Read what ``to_json`` wrote. Raises ``InvalidMapping`` for anything else, newer formats included."""
        try:
            fields = json.loads(text)
            version = fields["format"]
            MAPPINGS.require_known(version)
            plain_row_key = version == PLAIN_KEY_FORMAT_VERSION
            columns = tuple(_column_from_dict(column, plain_row_key) for column in fields["columns"])
            is_salted = version == SALTED_FORMAT_VERSION
            return cls(
                fields["table"],
                tuple(fields["row_key"]),
                columns,
                fields["conflict_level"],
                packed=fields["packed"] if is_salted else version == PACKED_FORMAT_VERSION,
                salt_buckets=fields["salt_buckets"] if is_salted else 0,
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            if isinstance(error, InvalidMapping):
                raise
            if isinstance(error, FormatNotSpoken):
                raise InvalidMapping(str(error)) from None
            raise InvalidMapping(f"this is no table mapping ({error!r}): {text[:200]!r}") from error


def _repeated(schema: StructType) -> list[str]:
    """What Spark tells apart, where it heeds case or compares nothing, and the table does not."""
    alike: dict[str, list[str]] = {}
    for field in schema.fields:
        alike.setdefault(field.name.lower(), []).append(field.name)
    return [
        f"columns {', '.join(map(repr, names))} are one in the table: drop or rename all but one"
        for names in alike.values()
        if len(names) > 1
    ]


def _column_to_dict(column: KeyColumn | ValueColumn) -> dict[str, str]:
    if isinstance(column, KeyColumn):
        return {"name": column.name, "type": column.type}
    return {"name": column.name, "type": column.type, "family": column.family, "qualifier": column.qualifier}


def _column_from_dict(fields: Mapping[str, Any], plain_row_key: bool) -> KeyColumn | ValueColumn:
    if "family" not in fields:
        return KeyColumn(fields["name"], fields["type"], plain_row_key)
    return ValueColumn(fields["name"], fields["type"], fields["family"], fields["qualifier"])
