"""What is logged again and again is held back, and counted."""

from __future__ import annotations

import logging

from logs import Repetition


def test_what_is_logged_again_and_again_is_held_back_and_counted() -> None:
    now_s = 0.0
    repetition = Repetition(lambda: now_s)

    def passed(lineno: int) -> str | None:
        record = logging.LogRecord("l", logging.WARNING, "p", lineno, "from %s", ("h",), None)
        return record.getMessage() if repetition.filter(record) else None

    shown = [passed(1) for _ in range(Repetition.ALIKE_MAX + 7)]
    last = "from h (more like it are not shown for 10 s)"
    assert shown == ["from h"] * (Repetition.ALIKE_MAX - 1) + [last] + [None] * 7
    assert passed(2) == "from h", "another line of the program is another kind"
    now_s = Repetition.PERIOD_MS / 1000
    assert passed(1) == "from h (7 more like the last ones were not shown)"
    assert passed(1) == passed(2) == "from h"
