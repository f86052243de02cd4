"""Every format that outlives a process or travels between two, with its versions and the level each belongs to.

Two kinds. What is small and rare says its version *itself*, so that whoever finds a single record knows it. What is
written by the million says nothing, and follows the *installation's level* (``versions.levels``). In both cases a
version that is not known here is refused with what to upgrade; none is ever guessed at.

Invariant: readers ask ``require_known`` before they look at any other field; a version is listed with the lowest level
at which it may be written, which every reader at that level knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

ITSELF: Final = "itself"
LEVEL: Final = "the installation's level"


class FormatNotSpoken(ValueError):
    """Something is written in a version that this program does not know; the text says what to upgrade."""


@dataclass(frozen=True, slots=True)
class Format:
    """``what`` it is, in the plural; ``versions``: each version, and the level from which on it may be written.

    ``said_by``: ``ITSELF`` or ``LEVEL``; ``place``: where such things lie.
    """

    what: str
    place: str
    versions: Mapping[int, int]
    said_by: str = ITSELF

    @property
    def newest(self) -> int:
        """The newest version that is known."""
        return max(self.versions)

    def require_known(self, version: Any) -> None:
        """Raise ``FormatNotSpoken`` unless ``version``, as it was found, is one of those known here."""
        if type(version) is int and version in self.versions:
            return
        known = " and ".join(map(str, sorted(self.versions)))
        text = f"format version {version!r} of {self.what} is not known to this program, which reads {known}"
        if type(version) is int and version > self.newest:
            raise FormatNotSpoken(f"{text}: a newer release wrote it: upgrade this program first (pythia-tso)")
        raise FormatNotSpoken(f"{text}: no release wrote this")


FRAMES: Final = Format("frames", "between client and oracle", {1: 1})
ZNODES: Final = Format("lease, epoch, level, data and member records", "ZooKeeper", {1: 1})
TENURES: Final = Format("histories of tenures", "ZooKeeper", {1: 1})
SOLO_RECORDS: Final = Format("epoch records of an oracle that is alone", "table ROOT_epoch", {1: 1})
LEVEL_RECORDS: Final = Format("level records", "table ROOT_commits, its first row", {1: 1})
COMMIT_ROWS: Final = Format("rows of the commit table, fences included", "table ROOT_commits", {1: 1}, LEVEL)
DATA_CELLS: Final = Format("shadow cells, tombstones and row markers", "the data tables", {1: 1}, LEVEL)
CONFLICT_KEYS: Final = Format("conflict keys: the hashes of cells and rows", "commits, manifests", {1: 1}, LEVEL)
MANIFEST_ROWS: Final = Format("manifests of bulk writes", "table ROOT_manifest", {1: 1}, LEVEL)
TABLE_MARKS: Final = Format("conflict levels, vacuum marks and fences of tables", "table ROOT_catalog", {1: 1}, LEVEL)
SWEPT_RECORDS: Final = Format("records of how far tables were vacuumed", "table ROOT_catalog", {2: 1})
IMPORT_ROWS: Final = Format("records of imports", "table ROOT_imports", {1: 1}, LEVEL)
CATALOG_ENTRIES: Final = Format("catalog entries", "table ROOT_catalog", {1: 1, 2: 1, 3: 1})
MAPPINGS: Final = Format("table mappings for Spark", "in catalog entries", {1: 1, 2: 1, 3: 1, 4: 1})
NAMED_SNAPSHOTS: Final = Format("named snapshots", "table ROOT_snapshots", {1: 1})
STREAM_RECORDS: Final = Format("records of streams", "table ROOT_streams", {1: 1})
CLAIM_RECORDS: Final = Format("records of claims", "table ROOT_claims", {1: 1})
HANDLES: Final = Format("handles of transactions and snapshots", "JSON that an application keeps or sends", {1: 1})
HISTORIES: Final = Format("recorded histories", "files of pythia history and pythia drill", {1: 1, 2: 1})
BACKUPS: Final = Format("backups", "directories of pythia backup", {1: 1, 2: 1})

FORMATS: Final = (
    FRAMES, ZNODES, TENURES, SOLO_RECORDS, LEVEL_RECORDS, COMMIT_ROWS, DATA_CELLS, CONFLICT_KEYS, MANIFEST_ROWS,
    TABLE_MARKS, SWEPT_RECORDS, IMPORT_ROWS, CATALOG_ENTRIES, MAPPINGS, NAMED_SNAPSHOTS, STREAM_RECORDS,
    CLAIM_RECORDS, HANDLES, HISTORIES, BACKUPS,
)  # fmt: skip
