"""What is known of one transaction, put together: what became of it, what that means, and what to do. Pure.

Only the commit table says what became of a transaction; everything else (the primary, the epoch's record, the manifest)
says what may still become of one that it leaves open. What could not be asked is left out, and never guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from client.bulk_writes.manifest_summary import BulkSummary
from commit_table import FENCE_AT_INFINITY, Aborted, Committed, TransactionRecord
from commit_table.timestamps import counter_of, milliseconds_of, wall_time_of
from wire import Life

AHEAD_MS_MAX = 3_660_000
"""How far timestamps may be ahead of the clock: an epoch begins where the one before might have handed out, which is an
hour ahead at most, and clocks are a minute apart at most."""


class State(StrEnum):
    """What became of a transaction, as far as is known."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    RUNNING = "running"
    GIVEN_UP = "given up"
    NEVER_BEGUN = "never begun"
    FORGOTTEN = "forgotten"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Primary:
    """What the primary says: its epoch, the last timestamp that it handed out, its horizon (0: not known yet)."""

    epoch: int
    last_timestamp: int
    horizon: int


@dataclass(frozen=True, slots=True)
class Findings:
    """Of one transaction. ``None``: that was not asked, or could not be."""

    start_timestamp: int
    record: TransactionRecord
    bulk: BulkSummary | None
    vacuumed_below: int
    """The furthest that any vacuum was going to; 0: there was none."""
    epoch: int | None
    """The newest epoch that is on record."""
    primary: Primary | None
    life: Life | None
    now_ms: int
    problem: str = ""
    """Why the primary could not be asked."""

    @property
    def has_bulk(self) -> bool:
        """Whether a bulk write is on record."""
        return self.bulk is not None and self.bulk.jobs > 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """In words."""

    state: State
    means: str
    advice: str


def verdict(found: Findings) -> Verdict:
    """What became of the transaction, what that means, and what to do."""
    match found.record.outcome():
        case Committed(commit_timestamp):
            return _committed(found, commit_timestamp)
        case Aborted():
            return _aborted(found)
        case _:
            return _open(found)


def _committed(found: Findings, commit_timestamp: int) -> Verdict:
    means = f"every snapshot from {commit_timestamp} on shows it"
    if found.record.is_lasting:
        means += "; its bulk writes do without shadow cells: this record lasts as long as any of their cells"
    if found.record.is_lasting or not found.has_bulk:
        return Verdict(State.COMMITTED, means, "nothing")
    return Verdict(
        State.COMMITTED,
        f"{means}; not all shadow cells of its bulk write are known to stand, and readers ask the commit table instead",
        "nothing has to be done; manager.finish_bulk_writes() or pythia vacuum writes them, and reads get faster",
    )


def _aborted(found: Findings) -> Verdict:
    void = found.record.commit_timestamp
    late = "" if void is None else f"; a commit at {void}, written by an oracle that was deposed, does not count"
    return Verdict(
        State.ABORTED,
        "it is fenced for good: its client rolled it back, or somebody had the oracle end it (manager.abort, "
        f"pythia txn abort, a vacuum); nothing of it is or will be visible{late}",
        "run its work again in a new transaction, if it is still wanted; a vacuum drops its cells",
    )


def _open(found: Findings) -> Verdict:
    """Nothing that counts is on record, and nothing forbids it for ever."""
    primary = found.primary
    newest_ms = found.now_ms + AHEAD_MS_MAX
    if primary is not None and found.start_timestamp > primary.last_timestamp:
        return Verdict(
            State.NEVER_BEGUN, "no oracle has handed out this timestamp yet", "look whether it is the right number"
        )
    if primary is None and milliseconds_of(found.start_timestamp) > newest_ms:
        return Verdict(State.NEVER_BEGUN, "its time has not come yet", "look whether it is the right number")
    if found.start_timestamp < found.vacuumed_below and not found.has_bulk:
        return Verdict(
            State.FORGOTTEN,
            "it is older than what a vacuum went up to, so its record may have been dropped: what it committed has "
            "shadow cells of its own, and nothing of it is open any more; or there never was such a transaction",
            "read its tables: what they show of it is committed",
        )
    return _undecided(found)


_NOTHING = "One that wrote nothing, met a Conflict, or was rolled back before its commit leaves no record, either"


def _undecided(found: Findings) -> Verdict:
    abort = f"pythia txn abort {found.start_timestamp} ends it for good"
    if found.life is Life.HEARD_OF:
        return Verdict(
            State.RUNNING, "it sends heartbeats, or its commit is being written: its client lives", f"wait; {abort}"
        )
    if found.life is Life.GIVEN_UP:
        return Verdict(
            State.GIVEN_UP,
            "the oracle has heard nothing of it for a whole transaction_life_ms: it cannot commit in this epoch. "
            + _NOTHING,
            f"run its work again in a new transaction; {abort}, which a vacuum does, too",
        )
    young = "it began less than a transaction_life_ms ago, so it may be running; or its client has died since. "
    older = (
        "whether it lives is not known, since the primary serves for less than a transaction_life_ms: it may be "
        "running, or its client has died. "
    )
    unasked = "nothing is on record, and no primary was asked whether it lives. "
    across = "It is from an older epoch: its client can still commit it, by revalidation. " if _is_over(found) else ""
    fenced = found.record.largest_fence
    below = f"A reader fenced it at {fenced}: it did not commit below that. " if fenced else ""
    heard = (older if _is_over(found) else young) if found.life is Life.YOUNG else unasked
    means = heard + across + below + _NOTHING
    wait = "wait for its client" if found.life is Life.YOUNG else "ask again when an oracle serves"
    return Verdict(State.UNDECIDED, means, f"{wait}; {abort}")


def _is_over(found: Findings) -> bool:
    return found.epoch is not None and found.start_timestamp < found.epoch


def lines(found: Findings) -> Iterator[str]:
    """For people."""
    told = verdict(found)
    yield f"transaction {found.start_timestamp}: {told.state}"
    yield f"  began    {moment(found.start_timestamp)}, counter {counter_of(found.start_timestamp)}; {_epoch(found)}"
    if told.state is State.COMMITTED:
        assert found.record.commit_timestamp is not None
        yield f"  commit   {found.record.commit_timestamp}, {moment(found.record.commit_timestamp)}"
    if 0 < found.record.largest_fence < FENCE_AT_INFINITY:
        fence = found.record.largest_fence
        yield f"  fence    {fence}, by a reader of the epoch that began {moment(fence)}"
    if found.bulk is not None and found.has_bulk:
        yield f"  bulk     {_bulk(found.bulk)}"
    yield f"  oracle   {_primary(found)}"
    yield f"  vacuum   {_vacuum(found)}"
    yield f"  means    {told.means}"
    yield f"  to do    {told.advice}"


def moment(timestamp: int) -> str:
    """When a timestamp was taken, in UTC."""
    return f"{wall_time_of(timestamp):%Y-%m-%d %H:%M:%S.%f}"[:-3] + " UTC"


def _epoch(found: Findings) -> str:
    if found.epoch is None:
        return "which epoch serves now is not known"
    began = f"(began {moment(found.epoch)})"
    return (
        f"its epoch is over, {found.epoch} {began} is the newest" if _is_over(found) else f"epoch {found.epoch} {began}"
    )


def _bulk(bulk: BulkSummary) -> str:
    rows = ", ".join(f"{table}: {count:,} rows" for table, count in sorted(bulk.rows.items())) or "no rows yet"
    unsealed = f", {bulk.unsealed:,} of them not ended" if bulk.unsealed else ""
    claimed = "; somebody began to end it" if bulk.claimed else ""
    return f"on record: {rows}; {bulk.jobs:,} writes{unsealed}{claimed}; the pass over its shadow cells is not finished"


def _primary(found: Findings) -> str:
    if found.primary is None:
        return f"not asked: {found.problem}"
    lives = {
        None: "",
        Life.HEARD_OF: "; it sends heartbeats, or is being committed",
        Life.YOUNG: "" if _is_over(found) else "; within its first transaction_life_ms",
        Life.GIVEN_UP: "; nothing was heard of it for a transaction_life_ms",
    }[found.life]
    horizon = found.primary.horizon
    place = "not known yet in this epoch" if not horizon else f"{horizon}, {moment(horizon)}"
    side = "" if not horizon else "; it lies below" if found.start_timestamp < horizon else "; it lies above"
    return f"horizon {place}{side}{lives}"


def _vacuum(found: Findings) -> str:
    if not found.vacuumed_below:
        return "there was none"
    below = "below: its record may be gone" if found.start_timestamp < found.vacuumed_below else "above"
    return f"went up to {found.vacuumed_below}, {moment(found.vacuumed_below)}; it lies {below}"


def fields(found: Findings) -> dict[str, Any]:
    """For programs; ``null`` is what is not known."""
    told, primary, fence = verdict(found), found.primary, found.record.largest_fence
    return {
        "transaction": found.start_timestamp,
        "state": told.state.value,
        "began": wall_time_of(found.start_timestamp).isoformat(timespec="milliseconds"),
        "commit_timestamp": found.record.commit_timestamp if told.state is State.COMMITTED else None,
        "fence": fence if 0 < fence < FENCE_AT_INFINITY else None,
        "epoch": found.epoch,
        "epoch_is_over": None if found.epoch is None else _is_over(found),
        "life": None if found.life is None else found.life.name.lower(),
        "horizon": None if primary is None else primary.horizon or None,
        "vacuumed_below": found.vacuumed_below or None,
        "bulk": None if found.bulk is None else found.bulk.to_fields(),
        "means": told.means,
        "advice": told.advice,
        "problem": found.problem or None,
    }
