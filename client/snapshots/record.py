"""A named snapshot as a value, and as it is stored. Pure.

Invariants: no two records are ever stored as the same bytes, nor two marks of a drop, so that a write whose answer was
lost and that arrives late finds its compare-and-set out of date. Of one snapshot ``is_finished`` changes, and then its
``timestamp``, which grows, with the ``epoch``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from client.errors import InvalidRequest
from versions import FormatNotSpoken
from versions.formats import NAMED_SNAPSHOTS

_DROPPED = b"dropped "
"""What stands in place of a record begins with this: there was a snapshot of that name."""


@dataclass(frozen=True, slots=True)
class NamedSnapshot:
    """A moment with a name, which holds back the vacuum.

    ``timestamp``: it shows every commit at or below. ``epoch``: the first timestamp of the epoch in which it was found
    settled, which is read with it. ``is_finished``: whether it was made sure that no vacuum was faster; one that is not
    cannot be read, and holds back the vacuum all the same. ``made``: tells it from others that have its name.
    """

    name: str
    timestamp: int
    epoch: int
    is_finished: bool
    made: str

    def encode(self) -> bytes:
        """The record as it is stored."""
        fields = {key: value for key, value in asdict(self).items() if key != "name"}
        return json.dumps({"format": NAMED_SNAPSHOTS.newest, **fields}).encode()

    def encode_dropped(self) -> bytes:
        """What is stored in its place once it is dropped."""
        return _DROPPED + self.made.encode()

    @classmethod
    def parse(cls, name: str, stored: bytes | None) -> NamedSnapshot | None:
        """Read what is stored under a name; ``None`` where there is none, or none any more.

        Raises ``InvalidRequest`` for a record that a newer version wrote.
        """
        if stored is None or stored.startswith(_DROPPED):
            return None
        fields: Mapping[str, Any] = json.loads(stored)
        try:
            NAMED_SNAPSHOTS.require_known(fields.get("format"))
        except FormatNotSpoken as error:
            raise InvalidRequest(f"the snapshot {name!r}: {error}") from None
        return cls(name, **{key: value for key, value in fields.items() if key != "format"})
