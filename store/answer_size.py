"""For how many rows to ask, when nothing tells how large they are until they come.

A fixed number is wrong both ways: 500 rows may be 5 KB or 5 GB, and a gateway has the whole of an answer in its memory,
several times over. Hence few rows at first, then as many as make an answer of a good size by the rows that came last.
Rows of one table differ, so that many may be asked for only after many have come: each answer multiplies the number by
no more than ``GROWTH_MAX``. After an answer that was lost, perhaps because it was too large for the gateway, half as
many are asked for.
"""

from __future__ import annotations

from typing import Final

GROWTH_MAX: Final = 8
"""From one answer to the next. With 8, a few hundred small rows come in two answers and a thousand in three."""


class AnswerSize:
    """The sizes of one scan's answers, or those of one call for many rows.

    ``answer_bytes_wanted``: of one answer, more or less; a single row may be larger. ``rows_first``: how many are asked
    for before anything is known of their size.
    """

    def __init__(self, answer_bytes_wanted: int, rows_first: int) -> None:
        self._answer_bytes_wanted = answer_bytes_wanted
        self._rows = rows_first

    def rows(self, rows_max: int) -> int:
        """For how many rows to ask next, of at most so many, which are at least 1."""
        return min(self._rows, rows_max)

    def came(self, rows: int, answer_bytes: int) -> None:
        """An answer of so many bytes about so many rows came."""
        if rows:
            fitting = self._answer_bytes_wanted * rows // max(1, answer_bytes)
            self._rows = max(1, min(fitting, GROWTH_MAX * rows))

    def was_lost(self, rows: int) -> None:
        """So many rows were asked for, and no whole answer came."""
        self._rows = max(1, rows // 2)

    def was_slow(self) -> None:
        """No answer came in time: a single row comes the soonest."""
        self._rows = 1
