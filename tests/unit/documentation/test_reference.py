"""The list of all commands in the documentation is the one that the commands give."""

from __future__ import annotations

from click.testing import CliRunner

from tests.imports import ROOT
from tests.unit.documentation.pythia import leaves
from tso.commands.main import main

BEGIN, END = "<!-- reference -->\n", "<!-- end of reference -->"
PAGE = ROOT / "docs" / "command-line.md"


def test_the_documentation_has_the_list_of_all_commands() -> None:
    made = CliRunner().invoke(main, ["reference"], prog_name="pythia")
    assert made.exit_code == 0, made.output
    documented = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    assert documented == made.stdout, f"put what `pythia reference` prints between the marks of {PAGE.name}"
    for path in leaves():
        assert f"### {path}\n" in documented
