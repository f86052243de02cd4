"""Tables for people, as operators' commands print them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

_WIDTH_CHARACTERS: Final = 160
"""What a narrow terminal cannot hold in a line it may break; a number is never cut short."""


def print_table(titles: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows below their titles."""
    table = Table(box=None, pad_edge=False)
    for title in titles:
        table.add_column(title, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console(width=_WIDTH_CHARACTERS, soft_wrap=True).print(table)
