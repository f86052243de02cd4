"""Whether an oracle that is to run alone is: without ZooKeeper, this look is all the protection there is."""

from __future__ import annotations

from commit_table import system_table
from fleet import NoAnswer, NotLetIn, ask_status
from lease.solo import SoloRegistry
from store import CellStore
from wire import Role

_STATUS_TIMEOUT_MS_MAX = 2_000.0


class NotAlone(Exception):
    """Another oracle of the installation is serving."""


def require_alone(store: CellStore, root: str) -> None:
    """Raise ``NotAlone`` where the process that served last without ZooKeeper still does. May raise ``LeaseError``."""
    record = SoloRegistry(store, system_table(root, "epoch")).read()
    if record is None:
        return
    try:
        alone = ask_status(record.address, _STATUS_TIMEOUT_MS_MAX).role is Role.STANDBY
    except NotLetIn as error:  # whoever asks for a token is there; and whom we cannot even ask may be
        raise NotAlone(
            f"another oracle of {root} may serve at {record.address}, and does not tell: {error}. Show what it asks "
            "for, or end it first"
        ) from error
    except NoAnswer:
        alone = True
    if not alone:
        raise NotAlone(f"another oracle of {root} serves at {record.address}: end it first")
