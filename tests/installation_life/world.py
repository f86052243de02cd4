"""What the steps of a life share: the installation, the model of it, and who is in the middle of what."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from client import InvalidRequest, Snapshot, Transaction, TransactionManager
from client.catalog.entry import ConflictLevel
from client.cells import TOMBSTONE
from client.transactions.savepoints import OwnWrites
from tests.installation_life.by_rest import RestTransaction
from tests.installation_life.model import CLAIMS, Model, OpenTransaction, Place
from tests.installation_life.surroundings import Surroundings

LEVELS: dict[str, ConflictLevel] = {"t": "cell", "u": "row", "plain": "row"}
"""The tables that there may be, and by what those conflict that write into one."""
ADOPTED = "plain"
"""The one that is never made: it is adopted."""
ROWS = [b"r%d" % number for number in range(3)]
COLUMNS = [b"f:a", b"f:b", b"g:a"]
AMID_OTHERS = "amid others"
"""How steps are counted that were done in the middle of others."""
UNREPEATED: Place = (b"r9", COLUMNS[0])
"""The cell that an attempt writes which is none of the one that counts."""
ALL_KEYS = [*ROWS, UNREPEATED[0]]


class Differs(AssertionError):
    """The installation did something else than the model."""


Holder = Transaction | RestTransaction
"""The library's own, or one that a server holds."""


@dataclass
class Open:
    """A transaction that has not ended, as it is in this process, and in the model."""

    model: OpenTransaction
    holders: list[Holder]
    """The objects that may be used for it, of one process each: what is put goes into the first."""
    managers: list[TransactionManager]
    """Of each holder."""
    savepoints: list[tuple[Any, Any, int]] = field(default_factory=list)
    """Each with what it goes back to, and how many bulk writes there were."""

    @property
    def is_by_rest(self) -> bool:
        """Whether a server holds it."""
        return isinstance(self.holders[0], RestTransaction)

    @property
    def in_process(self) -> Transaction:
        """The library's own object, for what REST has not; see ``has_all``."""
        assert isinstance(self.holders[0], Transaction)
        return self.holders[0]

    def __str__(self) -> str:
        return f"{self.model.start}"


class World:
    """One installation, those who use it, and what it has to do."""

    def __init__(self, around: Surroundings, draw: random.Random, tell: Callable[[str], None]) -> None:
        self.around = around
        self.draw = draw
        self.tell = tell
        self.levels = {around.table(name): level for name, level in LEVELS.items()}
        self.adopted = around.table(ADOPTED)
        self.model = Model()
        self.model.make(CLAIMS, by_row=False, shown_from=0)
        self.open: list[Open] = []
        self.held: list[tuple[TransactionManager, Snapshot]] = []
        self.moments: list[int] = []
        """Of the past, which may have been vacuumed."""
        self.names: dict[str, int] = {}
        """Named snapshots, and their moments."""
        self.horizon = self.outcomes_horizon = 0
        """How far vacuums may have gone."""
        self.numbers = count()
        self.counted: Counter[str] = Counter()
        """What was met, and how often."""

    def one(self, *, take: bool = False, may: Callable[[Open], bool] = lambda one: True) -> Open | None:
        """Some transaction of those who ``may`` do something now; ``take``: it is none any more afterwards."""
        usable = [one for one in self.open if may(one) and all(map(self.around.may_use, one.managers))]
        if not usable:
            return None
        one = self.draw.choice(usable)
        if take:
            self.open.remove(one)
        return one

    def table(self) -> str | None:
        """Some table; at times none."""
        return self.draw.choice([None, *sorted(self.model.tables.keys() - {CLAIMS}) * 2])

    def value(self) -> bytes:
        """Some value, at times an awkward one."""
        return self.draw.choice([b"", TOMBSTONE + b"x", b"%d" % next(self.numbers)])

    def lowest(self) -> int:
        """The oldest snapshot that somebody reads."""
        now = self.around.managers[0].snapshot().timestamp
        held = [each.timestamp for _, each in self.held]
        return min([now, *held, *self.names.values(), *(one.model.snapshot for one in self.open)])

    def is_shown(self, table: str, at: int) -> bool:
        """Whether a table was there by then."""
        return at >= self.model.tables[table].shown_from

    def seen(self, one: Open, table: str, own_writes: OwnWrites) -> dict[Place, bytes]:
        """What a transaction sees of a table."""
        return one.model.seen(table, self.model.seen(table, one.model.snapshot), own_writes)


def has_all(one: Open) -> bool:
    """Whether everything can be done in a transaction that the library can do."""
    return not one.is_by_rest


def same(what: str, found: object, wanted: object) -> None:
    """Raise ``Differs`` unless they are the same."""
    if found != wanted:
        raise Differs(f"{what}:\n  found  {found}\n  wanted {wanted}")


def refuses(what: str, call: Callable[[], object], by: type[Exception] = InvalidRequest) -> None:
    """Raise ``Differs`` unless the call raises such an error."""
    try:
        call()
    except by:
        return
    raise Differs(f"{what}, and was not refused")
