"""Tables with a mapping: made once, then named."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from client.adoption.adopting import Adopted
from client.manager import TransactionManager
from client.spark.errors import InvalidMapping
from client.spark.mapping import TableMapping


def create_table(
    manager: TransactionManager,
    mapping: TableMapping,
    *,
    if_missing: bool = False,
    split_keys: Sequence[bytes] = (),
) -> None:
    """Make the mapping's table and keep the mapping in its catalog entry, for good.

    ``if_missing``: leave a table as it is that exists with this mapping. ``split_keys``: where its regions begin, as
    ``client.spark.split_keys`` finds them in a sample of rows; see ``TransactionManager.create_table``. Raises
    ``InvalidRequest`` where a table of that name exists otherwise, ``CannotPreSplit``.
    """
    manager.create_table(
        mapping.table,
        mapping.families,
        conflict_level=mapping.conflict_level,
        description=mapping.to_json().encode(),
        if_missing=if_missing,
        split_keys=split_keys,
    )


def adopt_table(
    manager: TransactionManager, mapping: TableMapping, *, progress: Callable[[int], None] = lambda rows: None
) -> Adopted:
    """Take over the mapping's table, which programs without transactions have written, and keep the mapping for good.

    See ``TransactionManager.adopt_table``. The mapping says how the bytes that lie there are read: most such tables
    have a plain row key (``KeyColumn``). Raises ``InvalidRequest`` as that does, and for a family that the table lacks.
    """
    lacking = sorted(set(mapping.families) - set(manager.catalog.plain_families(mapping.table)))
    if lacking:
        raise InvalidMapping(f"table {mapping.table!r} lacks families of the mapping: {', '.join(lacking)}")
    if mapping.packed:
        raise InvalidMapping(f"a table that is adopted has cells, and the mapping of {mapping.table!r} is packed")
    return manager.adopt_table(
        mapping.table,
        conflict_level=mapping.conflict_level,
        description=mapping.to_json().encode(),
        progress=progress,
    )


def table_mapping(manager: TransactionManager, table: str) -> TableMapping:
    """The mapping with which a table was made.

    Raises ``InvalidMapping`` for a table without one, ``InvalidRequest`` where there is no such table.
    """
    description = manager.catalog.fresh_entry(table).description
    if not description:
        raise InvalidMapping(
            f"table {table!r} has no Spark mapping: Spark and pythia table read and write tables made by "
            "client.spark.create_table(manager, TableMapping(...)), or pythia table create, and those that were "
            "adopted with a mapping"
        )
    return TableMapping.from_json(description.decode(errors="replace"))
