"""How the processes that serve log, and bounds on what they log."""

from logs.repetition import Repetition

__all__ = ["Repetition"]
