"""How the processes that serve log, and bounds on what they log."""

from log_bounds.repetition import Repetition

__all__ = ["Repetition"]
