from __future__ import annotations

import io

import pytest
from rich.console import Console

from devcluster import Step
from devcluster.live_line import live_line


@pytest.mark.parametrize("is_terminal", [True, False])
def test_steps_are_shown_on_a_terminal_alone(is_terminal: bool) -> None:
    out = io.StringIO()
    with live_line(Console(file=out, force_terminal=is_terminal, width=100)) as show:
        show(Step("fetching", 3, 10))
    shown = out.getvalue()
    assert ("fetching" in shown, "3/10" in shown, bool(shown)) == (is_terminal,) * 3
