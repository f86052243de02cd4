"""The steps of a story: what is done to the model and, later, to Spark; each with what has to come of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tests.spark_jobs.model import Key, Outcome, State, Table, Values


class How(Enum):
    """What a job does with the rows of its DataFrame."""

    UPSERT = "upsert"
    DELETE = "delete"
    OVERWRITE = "overwrite"


class Fault(Enum):
    """What becomes of one task of a job, after some of its rows."""

    NONE = "none"
    ONCE = "fails once"
    ALWAYS = "fails for good"


@dataclass(frozen=True)
class Begin:
    """A transaction that the driver holds begins."""

    transaction: str


@dataclass(frozen=True)
class Write:
    """A job; ``transaction`` ``""``: one of its own. ``columns``: the value columns that its DataFrame has."""

    table: str
    transaction: str
    how: How
    rows: Mapping[Key, Values]
    columns: Sequence[str]
    expected: Outcome
    prefix: Key = ()
    fault: Fault = Fault.NONE
    partitions: int = 1
    batch_rows: int = 2_000
    shadow_cells: str = "written"
    """The option: some jobs end before their shadow cells are written, others never write any."""
    claim: str = ""
    """The key that it claims, if any; ``has_landed``: before, so that it writes nothing."""
    has_landed: bool = False


@dataclass(frozen=True)
class Plain:
    """The driver itself puts a row's cells, or deletes a row, without Spark."""

    table: str
    transaction: str
    key: Key
    values: Values | None
    """``None``: the row is deleted."""


@dataclass(frozen=True)
class Finish:
    """The driver commits, or gives up."""

    transaction: str
    commit: bool
    expected: Outcome


@dataclass(frozen=True)
class Look:
    """A snapshot is taken, and kept under this name."""

    point: str


@dataclass(frozen=True)
class WriteShadows:
    """The shadow cells that jobs left for later are written; nobody sees a difference."""


@dataclass(frozen=True)
class Adopt:
    """A program without transactions puts rows into a new table, which is adopted then; and puts more, of ``strays``,
    which nobody sees.
    """

    table: str
    rows: Mapping[Key, Values]
    strays: Sequence[Key]


@dataclass(frozen=True)
class Vacuum:
    """All tables are swept at a snapshot that is taken now: what was before is nobody's to read from here on.

    ``lasting``: so many records may last; ``everything``: rows that an earlier sweep was done with are looked at, too.
    """

    lasting: int
    everything: bool


@dataclass(frozen=True)
class Condition:
    """A filter on a column: ``=``, ``<``, ``<=``, ``>``, ``>=``, ``in``, ``starts``, ``null`` or ``not null``."""

    column: str
    operator: str
    operand: Any = None


@dataclass(frozen=True)
class Read:
    """A read: at a ``point``, in a ``transaction``, or else the newest; ``expected``: the rows, as sorted text."""

    table: str
    columns: Sequence[str]
    expected: Sequence[tuple[Any, ...]]
    point: str = ""
    transaction: str = ""
    conditions: Sequence[Condition] = ()
    pushed: bool = False
    """Whether with ``push_filters``."""
    by_schema: bool = False
    """Whether the columns are asked for by a schema, and not by the option."""
    by_handle: bool = False
    """Whether a snapshot is named by its handle, and not ``as_of`` its timestamp."""


Step = Adopt | Begin | Write | Plain | Finish | Look | WriteShadows | Vacuum | Read


@dataclass
class Story:
    """All steps of a seed; ``points``: what each moment that has a name has to show, of those since the last vacuum.

    Snapshots have a name, and so have the moment of each commit of the driver's and the one before it: the names of
    these are ``at <transaction>`` and ``before <transaction>``.
    """

    seed: int
    tables: Sequence[Table]
    steps: list[Step] = field(default_factory=list)
    points: dict[str, State] = field(default_factory=dict)
    read_again: Sequence[str] = ()
    """The points that Spark, too, reads once more in the end."""
