"""Who may serve, and which timestamps are theirs: lease and epoch rules over any coordinator.

``lease.zookeeper`` holds the coordinator on kazoo, ``lease.memory`` its twin, ``lease.solo`` an oracle that is alone;
importing this package imports none of them.
"""

from lease.candidate import Candidate
from lease.clocks import monotonic_ms, wall_ms
from lease.coordinator import Check, Coordinator, Create, Delete, Node, Operation, SetData
from lease.election import Contender, Holding, StandBy
from lease.errors import (
    CoordinatorRefused,
    CoordinatorUnavailable,
    DataRefused,
    InvalidLeaseSettings,
    LeaseError,
    LevelRefused,
    MayNotServe,
    RecordInvalid,
    StillHeld,
    Superseded,
)
from lease.floor import Floor, FloorRecord
from lease.historian import Historian, read_history
from lease.history import Cause, History, PastTenure, Succession
from lease.membership import members
from lease.paths import ZnodePaths
from lease.primary import PrimaryFinder
from lease.records import EpochRecord, LeaseRecord, LevelRecord, Member
from lease.rules import LeaseSettings
from lease.tenure import Tenure

__all__ = [
    "Candidate",
    "Cause",
    "Check",
    "Contender",
    "Coordinator",
    "CoordinatorRefused",
    "CoordinatorUnavailable",
    "Create",
    "DataRefused",
    "Delete",
    "EpochRecord",
    "Floor",
    "FloorRecord",
    "Historian",
    "History",
    "Holding",
    "InvalidLeaseSettings",
    "LeaseError",
    "LeaseRecord",
    "LeaseSettings",
    "LevelRecord",
    "LevelRefused",
    "MayNotServe",
    "Member",
    "Node",
    "Operation",
    "PastTenure",
    "PrimaryFinder",
    "RecordInvalid",
    "SetData",
    "StandBy",
    "StillHeld",
    "Succession",
    "Superseded",
    "Tenure",
    "ZnodePaths",
    "members",
    "monotonic_ms",
    "read_history",
    "wall_ms",
]
