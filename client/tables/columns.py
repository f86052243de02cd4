"""A table's mapping from what a command line says, or from the columns of a file. Pure.

The invariant: nothing is guessed. A column gets the type that was written down or that the file itself has, and what
has no exact counterpart among a table's types is refused with the way out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from client.catalog.entry import ConflictLevel
from client.spark import column_types
from client.spark.errors import InvalidMapping
from client.spark.mapping import TableMapping

_UNSIGNED = {"uint8": "smallint", "uint16": "int", "uint32": "bigint"}
_PLAIN = {str(column_types.arrow_type(name)): name for name in column_types.KNOWN_TYPES[:-1]}
"""Arrow's name of a type → the table's, where they are the same."""

Columns = Sequence[tuple[str, str]]
"""Names and types, in order."""


def parse_column(text: str) -> tuple[str, str]:
    """``"id:bigint"`` → its name and type. Raises ``InvalidMapping``."""
    name, colon, type_name = text.rpartition(":")
    if not colon or not name.strip() or not type_name.strip():
        raise InvalidMapping(f"a column is 'name:type', for instance 'id:bigint', not {text!r}")
    return name.strip(), column_types.normalise(type_name)


def parse_family(text: str) -> tuple[str, str]:
    """``"price=g"`` → a column and the family that it lies in. Raises ``InvalidMapping``."""
    name, equals, family = text.rpartition("=")
    if not equals or not name.strip() or not family.strip():
        raise InvalidMapping(f"a column's family is given as 'column=family', for instance 'price=g', not {text!r}")
    return name.strip(), family.strip()


def mapping_of(
    table: str,
    columns: Columns,
    row_key: Sequence[str],
    *,
    family: str,
    families: Mapping[str, str] = MappingProxyType({}),
    conflict_level: ConflictLevel,
    packed: bool = False,
    plain_row_key: bool = False,
    salt_buckets: int = 0,
) -> TableMapping:
    """The mapping of a table with these columns; ``families``: of some of them another. Raises ``InvalidMapping``."""
    schema = StructType([StructField(name, column_types.spark_type(type_name)) for name, type_name in columns])
    return TableMapping.from_schema(
        table,
        schema,
        row_key=row_key,
        family=family,
        families=families,
        conflict_level=conflict_level,
        packed=packed,
        plain_row_key=plain_row_key,
        salt_buckets=salt_buckets,
    )


def columns_like(schema: pa.Schema) -> list[tuple[str, str]]:
    """The columns of a file with the types that hold its values exactly. Raises ``InvalidMapping``."""
    return [(field.name, _type_like(field.name, field.type)) for field in schema]


def _type_like(name: str, arrow_type: pa.DataType) -> str:
    if pa.types.is_dictionary(arrow_type):
        return _type_like(name, arrow_type.value_type)
    if pa.types.is_decimal(arrow_type):
        return column_types.normalise(f"decimal({arrow_type.precision},{arrow_type.scale})")
    if pa.types.is_timestamp(arrow_type):
        return column_types.TIMESTAMP if arrow_type.tz else column_types.TIMESTAMP_NTZ
    if pa.types.is_large_string(arrow_type) or pa.types.is_string_view(arrow_type):
        return "string"
    if pa.types.is_large_binary(arrow_type) or pa.types.is_binary_view(arrow_type):
        return "binary"
    found = _PLAIN.get(str(arrow_type)) or _UNSIGNED.get(str(arrow_type))
    if found is None:
        raise InvalidMapping(
            f"column {name!r} of the file is {arrow_type}, which says no type of a table: write the columns down with "
            f"--column; known are {', '.join(column_types.KNOWN_TYPES)}"
        )
    return found
