"""Whether an oracle's gateway leads to the data of its installation, and not to another cluster's.

ZooKeeper has the name of the data on record (``ROOT/data``), and the data have it themselves. Where only one of the two
has it: data that come without a record are put on record, since ZooKeeper may have been made anew; a record without
data is another cluster's, or data that were lost. Invariant: nobody serves whose data bear another name than the one on
record, or none where there is one.
"""

from __future__ import annotations

import uuid

from commit_table.identity import IdentityOfData
from lease import Coordinator, CoordinatorUnavailable, DataRefused, ZnodePaths
from lease.data_record import put_data, read_data
from store import CellStore
from tso.settings import ServeSettings


class DataAgreement:
    """``store`` is at ``settings.thrift``. ``coordinator`` ``None``: the oracle is alone, and takes what is there."""

    def __init__(self, settings: ServeSettings, coordinator: Coordinator | None, store: CellStore) -> None:
        self._data = IdentityOfData(store, settings.root)
        self._coordinator = coordinator
        self._paths = ZnodePaths(settings.root)
        self._timeout_ms = settings.lease.request_timeout_ms
        self._gateway = settings.thrift

    def look(self) -> None:
        """Before anything is done: raise ``DataRefused`` where these are not the data of this installation.

        Raises ``CoordinatorUnavailable``, ``RecordInvalid``, ``StoreError``.
        """
        if self._coordinator is not None:
            recorded = read_data(self._coordinator, self._paths, self._timeout_ms)
            if recorded is not None:
                self._require(self._data.read(), recorded)

    def agree(self) -> None:
        """Have the name on record, once the commit table and the installation's znodes are there. As ``look``."""
        if self._coordinator is None:
            return
        recorded = read_data(self._coordinator, self._paths, self._timeout_ms)
        if recorded is None:
            identity = self._data.give(uuid.uuid4().hex)
            # Whatever came of it, what stands now counts: another process may have been faster, with other data.
            put_data(self._coordinator, self._paths, identity, self._timeout_ms)
            recorded = read_data(self._coordinator, self._paths, self._timeout_ms)
            if recorded is None:
                raise CoordinatorUnavailable(f"the name of the data of {self._paths.root} could not be put on record")
        self._require(self._data.read(), recorded)

    def _require(self, found: str | None, recorded: str) -> None:
        if found == recorded:
            return
        root = self._paths.root
        what = "has no data of it" if found is None else f"has data of another installation ({found})"
        raise DataRefused(
            f"the gateway at {self._gateway} leads to an HBase that {what}; those of {root} are {recorded}, says "
            f"ZooKeeper: look at thrift, zookeeper and root. If these are the data, since the others are lost: end "
            f"every oracle of {root}, remove the znode {self._paths.data}, and start them again"
        )
