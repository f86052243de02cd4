"""The flags that say where an installation is: which have to be given, and which counts where two say it."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner, Result

from configuration.connection_flags import one_of, oracle_flag, root_flag, thrift_flag, zookeeper_flag


@click.command()
@zookeeper_flag("where the primary is found.", required=False)
@oracle_flag("an oracle that serves alone.")
@thrift_flag
@root_flag
def places(zookeeper: str, oracle: str, thrift: str, root: str) -> None:
    click.echo((*one_of(zookeeper, oracle), thrift, root))


@click.command()
@zookeeper_flag("where the primary is found.")
def needing(zookeeper: str) -> None:
    click.echo(zookeeper)


def run(command: click.Command, *arguments: str, **variables: str) -> Result:
    unset: dict[str, str | None] = {"PYTHIA_ZOOKEEPER": None, "PYTHIA_ORACLE": None, "PYTHIA_THRIFT": None}
    return CliRunner().invoke(command, arguments, env={**unset, **variables})


@pytest.mark.parametrize("command", [places, needing])
def test_a_flag_that_has_no_default_has_to_be_given(command: click.Command) -> None:
    refused = run(command)
    assert refused.exit_code == 2
    assert "Missing option" in refused.output


def test_what_is_not_given_is_empty_or_the_default() -> None:
    assert run(places, "--thrift", "t:1").output.strip() == str(("", "", "t:1", "/pythia"))
    assert run(needing, PYTHIA_ZOOKEEPER="z:1").output.strip() == "z:1"


@pytest.mark.parametrize(
    ("arguments", "variables", "chosen"),
    [
        (["--zookeeper", "z:1"], {"PYTHIA_ORACLE": "o:1"}, ("z:1", "")),
        (["--oracle", "o:1"], {"PYTHIA_ZOOKEEPER": "z:1"}, ("", "o:1")),
        (["--zookeeper", "z:1", "--oracle", "o:1"], {}, ("z:1", "o:1")),
        ([], {"PYTHIA_ZOOKEEPER": "z:1", "PYTHIA_ORACLE": "o:1"}, ("z:1", "o:1")),
    ],
)
def test_a_flag_has_precedence_over_the_other_ones_variable(
    arguments: list[str], variables: dict[str, str], chosen: tuple[str, str]
) -> None:
    assert run(places, "--thrift", "t:1", *arguments, **variables).output.strip() == str((*chosen, "t:1", "/pythia"))
