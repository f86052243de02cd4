from __future__ import annotations

import io

from rich.console import Console

from demo.display import Display
from devcluster import Step


def test_without_a_terminal_there_are_plain_lines() -> None:
    out = io.StringIO()
    with Display(Console(file=out)) as display:
        with display.steps() as steps, display.phase("a cluster"):
            steps(Step("fetching", 1, 10))
            steps(Step("fetching", 2, 10))
            steps(Step("starting"))
        with display.bar("months", 12) as bar:
            bar.set("January", 0, 12)
        display.line("[as it is]")
    lines = out.getvalue().splitlines()
    assert [line.partition(":")[0] for line in lines] == ["  fetching", "  starting", "a cluster", "[as it is]"]


def test_phases_are_kept_with_what_they_did() -> None:
    with Display(Console(file=io.StringIO())) as display, display.phase("months") as phase:
        phase.rows = 7
    assert [(phase.title, phase.rows) for phase in display.phases] == [("months", 7)]
    assert display.phases[0].seconds >= 0
