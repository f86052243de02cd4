"""What the processes that serve have in common in what they log."""

from logs.repetition import Repetition

__all__ = ["Repetition"]
