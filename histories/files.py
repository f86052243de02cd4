"""Histories in files: JSON lines, or the public key-value form."""

from __future__ import annotations

from pathlib import Path

from histories.errors import HistoryError
from histories.history import History
from histories.json_lines import from_lines, to_lines
from histories.key_value import from_key_value, to_key_value


def save(history: History, path: Path) -> None:
    """Write JSON lines. Raises ``OSError``."""
    with path.open("w", encoding="utf-8") as file:
        for line in to_lines(history):
            file.write(line + "\n")


def load(path: Path) -> History:
    """Read JSON lines. Raises ``HistoryError`` with the file and the line for what is none, or cannot be read."""
    try:
        with path.open(encoding="utf-8") as file:
            return from_lines(file)
    except (OSError, ValueError) as error:
        raise HistoryError(f"{path}: {error}") from error


def save_key_value(history: History, path: Path) -> None:
    """Write the public key-value form. Raises ``OSError``."""
    path.write_text(to_key_value(history), encoding="utf-8")


def load_key_value(path: Path) -> History:
    """Read the public key-value form. Raises ``HistoryError`` as ``load`` does."""
    try:
        return from_key_value(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise HistoryError(f"{path}: {error}") from error
