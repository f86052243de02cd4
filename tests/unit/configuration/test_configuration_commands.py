"""`pythia config`, and that documentation and command line say what the declarations say."""

from __future__ import annotations

import dataclasses
import json
import re
from importlib.metadata import EntryPoint
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from client import configured
from client.configured import load_settings
from client.errors import InvalidRequest
from client.settings import SECTIONS as CLIENT_SECTIONS
from client.settings import ClientSettings
from configuration import commands, rooms
from configuration.rest_limits import REST_LIMITS, RestLimits
from configuration.rooms import all_sections, known_tables
from configuration.showing import reference
from tests.imports import ROOT
from tso import options
from tso.commands.serve import tso
from tso.options import ORACLE, ServeOptions, choose
from tso.options import SECTIONS as ORACLE_SECTIONS
from tso.settings import LIMITS, Limits

SECTIONS = sorted((*CLIENT_SECTIONS, *ORACLE_SECTIONS), key=lambda section: section.name)


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "all_sections", lambda: SECTIONS)
    for reader in (configured, options):
        monkeypatch.setattr(reader, "known_tables", lambda: ["client", "oracle"])


def invoke(*arguments: str, **environment: str) -> tuple[int, str]:
    result = CliRunner().invoke(commands.config, arguments, env=environment)
    return result.exit_code, result.output


def written(tmp_path: Path, text: str) -> str:
    file = tmp_path / "pythia.toml"
    file.write_text(text)
    return str(file)


def test_the_documentation_has_the_table_of_all_settings() -> None:
    """Both ways: a setting that is not there, and a line that is no setting. Renew it by `pythia config reference`."""
    text = (ROOT / "docs" / "configuration.md").read_text()
    documented = text.partition("<!-- settings -->\n")[2].partition("<!-- end of settings -->")[0]
    assert documented == reference(SECTIONS)


def test_every_setting_has_a_unit_or_choices_a_text_and_limits() -> None:
    for section in SECTIONS:
        for setting in section.settings:
            assert setting.text.endswith("."), setting.name
            assert setting.unit or setting.limits, setting.name
            if setting.kind in (int, float):
                assert setting.least is not None, setting.name
                assert setting.most is not None, setting.name
                assert setting.least <= setting.default <= setting.most, setting.name


def test_every_field_of_a_settings_class_is_declared() -> None:
    of_oracles = ((Limits, LIMITS), (RestLimits, REST_LIMITS), (ServeOptions, ORACLE))
    for declared, section in (*of_oracles, (ClientSettings, CLIENT_SECTIONS[0])):
        assert [field.name for field in dataclasses.fields(declared)] == [each.name for each in section.settings]


def test_the_help_of_serve_names_every_setting_its_variable_and_its_default() -> None:
    output = re.sub(r"\s+", " ", CliRunner().invoke(tso, ["serve", "--help"], terminal_width=500).output)
    serve = tso.commands["serve"]
    assert isinstance(serve, click.Command)
    flags = {parameter.name for parameter in serve.params} - {"file", "limits", "rest_limits"}
    assert flags == {setting.name for setting in ORACLE.settings}
    for setting in ORACLE.settings:
        assert setting.environment in output
        assert setting.text in output
    for limit in (*LIMITS.settings, *REST_LIMITS.settings):
        assert f"{limit.name}={limit.default}" in output


def test_a_file_without_a_mistake_passes(tmp_path: Path) -> None:
    file = written(
        tmp_path, "[oracle]\nlease_ms = 3000\n[oracle.limits]\ncommit_share_max = 1\n[client]\nheal = false\n"
    )
    code, output = invoke("check", file, PYTHIA_LEASE_MS="nonsense")
    assert (code, output) == (0, f"{file}: 3 settings, no mistake\n")


def test_a_file_with_mistakes_gets_all_of_them_and_exit_code_1(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        '[oracle]\nzookeper = "z:1"\nlease_ms = 5\nrenewals_per_lease = "4"\n'
        "[oracle.limits]\nlookup_ids_max = 20000\n[client]\ndeadline_ms = 0\n[cleint]\n",
    )
    code, output = invoke("check", file)
    assert code == 1
    for reason in (
        "did you mean 'zookeeper'",
        "lease_ms needs a whole number from 100",
        "write it without quotes",
        "could never be taken",
        "deadline_ms needs",
        "did you mean [client]",
    ):
        assert reason in output
    assert len(output.splitlines()) == 6


def test_show_says_where_each_value_came_from(tmp_path: Path) -> None:
    file = written(tmp_path, "[oracle]\nlease_ms = 3000\nrenewals_per_lease = 5\n")
    code, output = invoke("show", "--config", file, "--json", PYTHIA_LEASE_MS="4000", PYTHIA_LIMITS="commit_writers=3")
    assert code == 0
    shown = json.loads(output)
    assert shown["oracle"]["lease_ms"] == {"value": 4000, "origin": "the variable PYTHIA_LEASE_MS"}
    assert shown["oracle"]["renewals_per_lease"] == {"value": 5, "origin": f"the file {file}"}
    assert shown["oracle.limits"]["commit_writers"]["origin"] == "the variable PYTHIA_LIMITS"
    assert shown["client"]["heal"] == {"value": True, "origin": "default"}
    code, output = invoke("show", PYTHIA_CONFIG=file)
    assert f"lease_ms = 3000  # the file {file}" in output


def test_show_tells_mistakes_too() -> None:
    code, output = invoke("show", PYTHIA_LEASE_MS="x")
    assert code == 1
    assert "the variable PYTHIA_LEASE_MS, [oracle] lease_ms: lease_ms needs a whole number" in output


def test_serve_takes_a_file_the_environment_and_flags_in_that_order(tmp_path: Path) -> None:
    file = written(
        tmp_path, '[oracle]\nzookeeper = "z:1"\nthrift = "t:1"\nlease_ms = 3000\nroot = "/a"\n[client]\nheal = "?"\n'
    )
    environment = {"PYTHIA_LEASE_MS": "4000", "PYTHIA_NAME": "n", "PYTHIA_LIMITS": "connections_max=5 lookup_threads=1"}
    chosen = choose(file, environment, {"name": "m", "root": None}, ["connections_max=6"])
    settings = chosen.settings()
    assert (settings.zookeeper, settings.thrift, settings.root, settings.name) == ("z:1", "t:1", "/a", "m")
    assert settings.lease.lease_ms == 4000
    assert (settings.limits.connections_max, settings.limits.lookup_threads) == (6, 1)
    assert "lease_ms=4000 (the variable PYTHIA_LEASE_MS)" in chosen.changed
    assert "advertise" not in chosen.changed


def test_limits_of_rest_come_from_the_same_places(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        '[oracle]\nalone = true\nthrift = "t:1"\nrest_listen = "127.0.0.1:0"\n'
        "[oracle.rest_limits]\nthreads_max = 2\nrequests_max = 3\nsavepoints_max = 4\n",
    )
    environment = {"PYTHIA_REST_LIMITS": "requests_max=5 savepoints_max=6"}
    chosen = choose(file, environment, {}, [], ["savepoints_max=7"])
    assert chosen.rest_limits == ("requests_max=5", "threads_max=2", "savepoints_max=7")
    assert "requests_max=5 (the variable PYTHIA_REST_LIMITS)" in chosen.changed
    assert "savepoints_max=7 (the flag --rest-limit)" in chosen.changed


def test_a_client_is_set_by_the_same_file(tmp_path: Path) -> None:
    file = written(
        tmp_path, '[oracle]\nlease_ms = 5\n[client]\nzookeeper = "z:1"\nthrift = "t:1"\ndeadline_ms = 9000\n'
    )
    expected = ClientSettings("z:1", "t:2", deadline_ms=9000)
    assert load_settings(file, {"PYTHIA_THRIFT": "t:2"}) == expected
    assert load_settings(None, {"PYTHIA_THRIFT": "t:2", "PYTHIA_CONFIG": file}) == expected
    with pytest.raises(InvalidRequest, match=r"deadline_ms needs .*thrift is missing.*neither is there"):
        load_settings(None, {"PYTHIA_CLIENT_DEADLINE_MS": "soon"})


def test_the_sections_are_found_by_entry_points_and_an_extra_that_is_missing_takes_nothing_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entries = [
        EntryPoint("oracle", "tso.options:SECTIONS", rooms.GROUP),
        EntryPoint("other", "no_such_package:SECTIONS", rooms.GROUP),
    ]
    monkeypatch.setattr(rooms, "entry_points", lambda group: entries)
    assert all_sections() == [ORACLE, LIMITS, REST_LIMITS]
    assert known_tables() == ["oracle", "other"]
