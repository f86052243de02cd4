"""What goes over the line as JSON, with examples. Pure.

Timestamps and ids have 63 and 64 bits, more than many a JSON reader keeps of a number: they are texts.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from commit_table.timestamps import TIMESTAMP_MAX

_START = "464870022807650305"
_SNAPSHOT = "464870022807650304"
_COMMIT = "464870022807650306"
_TABLE_CHARACTERS_MAX = 1_000
_NAME_CHARACTERS_MAX = 100


def _in_range(text: str) -> str:
    if int(text) >= TIMESTAMP_MAX:
        raise ValueError("a timestamp is below 2**63 - 1")
    return text


def _in_64_bits(text: str) -> str:
    if int(text) >= 2**64:
        raise ValueError("an id has 64 bits")
    return text


Timestamp = Annotated[
    str, Field(pattern=r"^[1-9][0-9]{0,18}$", max_length=19, examples=[_START]), AfterValidator(_in_range)
]
Moment = Annotated[
    str,
    Field(
        min_length=1,
        max_length=_NAME_CHARACTERS_MAX,
        description="A timestamp, a time with its zone such as `2013-07-04T12:00:00Z`, or the name of a snapshot.",
        examples=[_SNAPSHOT],
    ),
]
Since = Annotated[
    str,
    Field(
        min_length=1,
        max_length=_NAME_CHARACTERS_MAX,
        description="The earlier moment, or `0`: all rows that there are.",
        examples=[_START],
    ),
]
CellId = Annotated[str, Field(pattern=r"^[0-9]{1,20}$", max_length=20), AfterValidator(_in_64_bits)]
TableName = Annotated[str, Field(min_length=1, max_length=_TABLE_CHARACTERS_MAX, examples=["accounts"])]
SavepointName = Annotated[
    str,
    Field(min_length=1, max_length=_NAME_CHARACTERS_MAX, pattern=r"^[A-Za-z0-9._-]+$", examples=["before-the-fee"]),
]


RoleName = Literal["primary", "standby", "draining", "silent"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ProblemDocument(BaseModel):
    """RFC 9457; members beyond these belong to the code."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "type": "/v1/problems/conflict",
                    "code": "conflict",
                    "title": "Another transaction committed first",
                    "status": 409,
                    "detail": "transaction … was aborted: another transaction committed to its write set …",
                    "retry": True,
                    "retry_with": "transaction",
                    "start_timestamp": _START,
                }
            ]
        },
    )

    type: str
    code: str
    title: str
    status: int
    detail: str
    retry: bool
    retry_with: Literal["request", "transaction"] | None = None
    retry_after_ms: int | None = None


class BeginBody(_Model):
    """How many transactions to begin, all at one snapshot."""

    count: int = Field(1, ge=1, examples=[1])


class Begun(_Model):
    """Transactions that began; each start timestamp is a transaction's id."""

    start_timestamps: list[Timestamp]
    snapshot: str = Field(examples=[_SNAPSHOT])
    epoch: str


class Cell(_Model):
    """A cell of a write set; without ``column`` it is the row, as tables of conflict level `row` have it."""

    table: TableName
    row: str = Field(min_length=1, examples=["alice"])
    column: str | None = Field(None, examples=["d:balance"])


class CommitBody(_Model):
    """A transaction to decide over its write set, and over what it guards: cells, 64-bit ids, or both."""

    start_timestamp: Timestamp
    snapshot: Timestamp = Field(examples=[_SNAPSHOT])
    cells: list[Cell] = Field(
        default_factory=list, examples=[[{"table": "accounts", "row": "alice", "column": "d:balance"}]]
    )
    cell_ids: list[CellId] = Field(default_factory=list, examples=[["15241578753238836750"]])
    guards: list[Cell] = Field(
        default_factory=list,
        description="Cells that it relies on without writing them: it conflicts with whoever wrote one after its "
        "snapshot, and with nobody else who guards it.",
    )
    guard_ids: list[CellId] = Field(default_factory=list, description="Guards by their 64-bit ids.")
    validated: Timestamp | None = Field(
        None, description="A later snapshot up to which you looked for conflicts yourself."
    )
    on_too_old: Literal["abort", "keep"] = Field(
        "abort",
        description="Where the oracle does not remember the snapshot: have the transaction aborted for good, or leave "
        "it undecided, to be committed again with `validated`.",
    )


class CommitBatchBody(_Model):
    """Several commits, each decided by itself, in this order."""

    commits: list[CommitBody] = Field(min_length=1)


class Committed(_Model):
    """The transaction is visible to every snapshot at or above ``commit_timestamp``."""

    outcome: Literal["committed"] = "committed"
    start_timestamp: str = Field(examples=[_START])
    commit_timestamp: str = Field(examples=[_COMMIT])


class Refused(_Model):
    """What a commit of a batch is told instead; ``refused``: nothing was done, ``unknown``: send it again."""

    outcome: Literal["aborted", "refused", "unknown"]
    start_timestamp: str
    problem: ProblemDocument


class Decisions(_Model):
    """In the order asked."""

    decisions: list[Committed | Refused]


class StartTimestampsBody(_Model):
    """Transactions, by their ids."""

    start_timestamps: list[Timestamp] = Field(min_length=1, examples=[[_START]])


class Outcome(_Model):
    """What became of a transaction; ``undecided`` may change."""

    start_timestamp: str = Field(examples=[_START])
    outcome: Literal["committed", "aborted", "undecided"]
    commit_timestamp: str | None = Field(None, examples=[_COMMIT])


class Outcomes(_Model):
    """In the order asked."""

    outcomes: list[Outcome]


class Beat(_Model):
    """A transaction that is still worked on."""

    start_timestamp: Timestamp
    snapshot: Timestamp = Field(examples=[_SNAPSHOT])


class HeartbeatBody(_Model):
    """Transactions to let live on."""

    transactions: list[Beat] = Field(min_length=1)


class Alive(_Model):
    """Start timestamp → whether it lives on; false: it was given up before."""

    alive: dict[str, bool]


class SnapshotTaken(_Model):
    """A moment to read at; ``start_timestamp``: what to send heartbeats for, to keep its versions from the vacuum."""

    snapshot: str = Field(examples=[_SNAPSHOT])
    start_timestamp: str = Field(examples=[_START])
    epoch: str


class Decoded(_Model):
    """When a timestamp was taken."""

    timestamp: str
    time: str = Field(examples=["2026-11-21T10:00:00.123000+00:00"])
    milliseconds: int
    counter: int


class BeginTransactionBody(_Model):
    """Options of a transaction that is held here."""

    read_only: bool = False


class TransactionState(_Model):
    """A transaction that is held here; ``expires_in_ms``: without another request."""

    id: str = Field(examples=[_START])
    snapshot: str = Field(examples=[_SNAPSHOT])
    read_only: bool
    written_bytes: int
    savepoints: list[str]
    expires_in_ms: int


class Row(_Model):
    """A row as the transaction sees it: column → value; no values: there is no such row."""

    row: str = Field(examples=["alice"])
    values: dict[str, str] = Field(examples=[{"d:balance": "70"}])


class Page(_Model):
    """Rows in key order, which may be none; ``next``: what to give as ``after`` for those that follow.

    It is ``null`` at the end, and only there.
    """

    rows: list[Row]
    next: str | None


class RowToRead(_Model):
    """A row to read, and which columns of it: families, or ``family:qualifier``; by default all."""

    table: TableName
    row: str
    columns: list[str] | None = None


class ReadsBody(_Model):
    """Rows to read, of any tables."""

    reads: list[RowToRead] = Field(
        min_length=1, examples=[[{"table": "accounts", "row": "alice"}, {"table": "accounts", "row": "bob"}]]
    )


class GuardableReadsBody(ReadsBody):
    """Rows to read, of any tables; ``guarded``: which nobody else may change before the transaction commits.

    In a table with conflicts by cell the columns are to be named then.
    """

    guarded: bool = False


class RowOfTable(_Model):
    """A row that was read: column → value; no values: there is no such row."""

    table: str = Field(examples=["accounts"])
    row: str = Field(examples=["alice"])
    values: dict[str, str] = Field(examples=[{"d:balance": "70"}])


class RowsRead(_Model):
    """A row for each read, in their order; or for the first of them, where all would be too large for one answer."""

    rows: list[RowOfTable]


class ChangedRow(_Model):
    """A row that is different; ``values`` as they are at the later moment, ``null`` where it has been deleted."""

    row: str = Field(examples=["alice"])
    values: dict[str, str] | None = Field(examples=[{"d:balance": "70"}])
    commit_timestamp: str = Field(description="Of the last commit that changed it.", examples=[_COMMIT])


class ChangesPage(_Model):
    """Changed rows in key order, which may be none; ``next``: what to give as ``after``, ``null`` at the end.

    ``snapshot`` is the later moment, by which to ask for the other pages, and from which on to ask the next time.
    """

    rows: list[ChangedRow]
    next: str | None
    snapshot: str = Field(examples=[_SNAPSHOT])


class PutBody(_Model):
    """Columns to write."""

    values: dict[str, str] = Field(min_length=1, examples=[{"d:balance": "70"}])


class PutWrite(_Model):
    """Write columns of a row."""

    op: Literal["put"]
    table: TableName
    row: str
    values: dict[str, str] = Field(min_length=1)


class DeleteWrite(_Model):
    """Delete columns of a row, by default all."""

    op: Literal["delete"]
    table: TableName
    row: str
    columns: list[str] | None = None


class WritesBody(_Model):
    """Puts and deletes, all of which are taken or none."""

    writes: list[Annotated[PutWrite | DeleteWrite, Field(discriminator="op")]] = Field(
        min_length=1,
        examples=[[{"op": "put", "table": "accounts", "row": "alice", "values": {"d:balance": "70"}}]],
    )


class Taken(_Model):
    """What the transaction holds by now."""

    written_bytes: int


class SavepointBody(_Model):
    """A name for this moment of the transaction; not that of an open one."""

    name: SavepointName


class ClaimBody(_Model):
    """A key that names what the transaction lands: the order, the input, the file. One of a table's, or everybody's."""

    key: str = Field(examples=["orders/2026-11-21"])
    table: TableName | None = None


class Claimed(_Model):
    """``false``: what the key names has landed before, so there is nothing to be done."""

    claimed: bool


class RolledBack(_Model):
    """The transaction was given up."""

    outcome: Literal["rolled back"] = "rolled back"
    start_timestamp: str


class Status(_Model):
    """The oracle beside this process, and this process."""

    role: RoleName
    holder: str
    oracle: str
    primary: str
    primary_rest: str
    numbers: dict[str, str] = Field(description="The oracle's numbers, as `pythia tso status --json` has them.")
    open_transactions: int
    written_bytes: int


class Health(_Model):
    """``ok``, or why not."""

    status: Literal["ok"] = "ok"


class ProblemKind(_Model):
    """What a code means."""

    code: str
    status: int
    title: str
    retry: Literal["no", "request", "transaction"]
    advice: str
