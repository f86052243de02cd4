"""Every fault by its name."""

from __future__ import annotations

from drills.fault import Fault
from drills.network_faults import (
    CutFromAll,
    CutFromClients,
    CutFromHBase,
    CutFromZooKeeper,
    LoseAll,
    LoseClients,
    LoseHBase,
    LoseZooKeeper,
    PartitionZooKeeper,
    SlowHBase,
    SplitBrain,
)
from drills.process_faults import HandOver, Kill, ManyKills, Stop, StopInFlush, Terminate
from drills.service_faults import ClockBack, ClockForward, ClockThenKill, KillGateway, KillHBase, KillZooKeeper

FAULTS: dict[str, type[Fault]] = {
    fault.name: fault
    for fault in (
        Kill,
        Stop,
        StopInFlush,
        Terminate,
        HandOver,
        ManyKills,
        CutFromZooKeeper,
        LoseZooKeeper,
        CutFromHBase,
        LoseHBase,
        CutFromClients,
        LoseClients,
        CutFromAll,
        LoseAll,
        SlowHBase,
        SplitBrain,
        PartitionZooKeeper,
        KillZooKeeper,
        KillGateway,
        KillHBase,
        ClockForward,
        ClockBack,
        ClockThenKill,
    )
}
