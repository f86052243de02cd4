"""All oracles of an installation, as an operator sees them: for the command line and for the console.

The invariant: nothing is decided here. Who is primary each oracle says itself, and of two who say it the newer epoch is
believed, by whoever asks; a hand-over is asked of the primary, which does it.
"""

from fleet.asking import (
    ANONYMOUS,
    ASKED_MS_MAX,
    NoAnswer,
    NotLetIn,
    ask_everything,
    ask_metrics,
    ask_status,
    ask_to_drain,
    ask_to_hand_over,
)
from fleet.oracles import (
    CannotHandOver,
    Handover,
    HandoverUncertain,
    NobodyServes,
    addresses,
    hand_over,
    is_one_ready,
    look,
    nobody_ready,
    nobody_serves,
    observe,
)
from fleet.told import Observed, Report, Seen, primary_of

__all__ = [
    "ANONYMOUS",
    "ASKED_MS_MAX",
    "CannotHandOver",
    "Handover",
    "HandoverUncertain",
    "NoAnswer",
    "NobodyServes",
    "NotLetIn",
    "Observed",
    "Report",
    "Seen",
    "addresses",
    "ask_everything",
    "ask_metrics",
    "ask_status",
    "ask_to_drain",
    "ask_to_hand_over",
    "hand_over",
    "is_one_ready",
    "look",
    "nobody_ready",
    "nobody_serves",
    "observe",
    "primary_of",
]
