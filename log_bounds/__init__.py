"""Bounds on what the processes that serve log."""

from log_bounds.repetition import Repetition

__all__ = ["Repetition"]
