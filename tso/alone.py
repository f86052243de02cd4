"""Whether an oracle that is to run alone is: without ZooKeeper, this look is all the protection there is."""

from __future__ import annotations

from commit_table import system_table
from fleet import NoAnswer, NotLetIn, ask_status
from lease.solo import SoloRegistry
from store import CellStore

_STATUS_TIMEOUT_MS_MAX = 10_000.0
"""For one that is there and does not answer; where nobody is, that is known at once."""


class NotAlone(Exception):
    """Another oracle of the installation is serving."""


def require_alone(store: CellStore, root: str) -> None:
    """Raise ``NotAlone`` where the process that served last without ZooKeeper is still there: one that has just lost
    its lease to itself, since it stood still, takes it again. May raise ``LeaseError``.
    """
    record = SoloRegistry(store, system_table(root, "epoch")).read()
    if record is None:
        return
    try:
        ask_status(record.address, _STATUS_TIMEOUT_MS_MAX)
    except NotLetIn as error:  # whoever asks for a token is there; and whom we cannot even ask may be
        raise NotAlone(
            f"another oracle of {root} may serve at {record.address}, and does not tell: {error}. Show what it asks "
            "for, or end it first"
        ) from error
    except NoAnswer:
        return
    raise NotAlone(f"another oracle of {root} serves at {record.address}: end it first")
