"""What the documentation names is there: links, commands, options, settings, metrics, routes, files."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from enum import Enum
from functools import cache
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from access.commands import token as tokens
from client.catalog.catalog import Catalog
from configuration.commands import config as settings
from configuration.defaults import DEFAULT_ROOT
from configuration.rest_limits import RestLimits
from configuration.rooms import all_sections
from rest.app import create_app
from store import MemoryCellStore
from tests.counted import family_named
from tests.imports import ROOT
from tests.unit.documentation.pages import NAMES, PAGES, anchors, blocks, codes, links, prose, resolved, text_of
from tests.unit.documentation.pythia import everything, leaves
from wire.metric_families import FAMILIES

SOURCES = ("access", "benchmarks", "client", "commit_table", "configuration", "demo", "devcluster", "docker", "drills",
           "examples", "fleet", "histories", "kernels", "lease", "logs", "rest", "store", "tests", "tso", "versions",
           "wire")  # fmt: skip
OWN_TABLES = Catalog(MemoryCellStore(), DEFAULT_ROOT).tables_of_nobody


@cache
def words_of_the_code() -> frozenset[str]:
    """Every identifier in the project's code and configuration."""
    files = [path for room in SOURCES for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".yml", ".sh", "")]
    files += [ROOT / name for name in ("pyproject.toml", "Makefile", "docker-compose.yml", "operations/alerts.yml")]
    return frozenset(
        word for path in files if path.is_file() for word in re.findall(r"\w+", path.read_text("utf-8", "ignore"))
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_link_leads_somewhere(name: str) -> None:
    for target in links(name):
        path, anchor = resolved(name, target)
        assert path.exists(), f"{name}: {target}"
        if anchor:
            assert anchor in anchors(str(path.relative_to(ROOT))), f"{name}: {target}"


def test_every_page_is_reached_from_the_first_one() -> None:
    reached, waiting = set(), ["README.md"]
    while waiting:
        name = waiting.pop()
        reached.add(name)
        found = (str(resolved(name, target)[0].relative_to(ROOT)) for target in links(name))
        waiting += [each for each in found if each in NAMES and each not in reached]
    assert set(NAMES) - reached == {"CHANGELOG.md"}


def command_lines(name: str) -> Iterator[list[str]]:
    """The words of every call of `pythia` in a fenced block; a pipe or a comment ends it."""
    for block in blocks(name):
        if block.language not in ("", "sh"):
            continue
        for line in re.sub(r"\\\n *", " ", block.text).splitlines():
            for call in re.finditer(r"(?:^|[\s(])(pythia .*)$", line.partition(" #")[0]):
                if not line.startswith("#"):
                    yield until_an_operator(call[1])


def until_an_operator(text: str) -> list[str]:
    """The words of the first command of a shell line."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|;&<>()")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if set(word) <= set("|;&<>()"):
            break
        words.append(word)
    return words


def checked(line: list[str]) -> str:
    """The path of the command in a line. Fails where there is none, or where its arguments cannot be parsed."""
    words = [word for word in line if word != "…"]
    path, at = "pythia", 1
    while at < len(words) and f"{path} {words[at]}" in everything():
        path, at = f"{path} {words[at]}", at + 1
    if path == "pythia":
        assert words[at:], f"no command: {line}"
        assert set(words[at:]) <= {"--help", "--version", "COMMAND"}, f"no command: {line}"
        return path
    context, command = everything()[path]
    if isinstance(command, click.Group):
        assert words[at:] in ([], ["--help"]), f"no command {words[at:]} in {path}: {line}"
        return path
    given = [word for word in words[at:] if word != "--help"]
    try:
        values, _, _ = command.make_parser(context).parse_args(args=list(given))
        for parameter in command.params:
            value = values.get(parameter.name or "")
            if value not in (None, ()) and not isinstance(value, Enum):  # click's mark of what was not given
                parameter.type_cast_value(context, value)
    except click.ClickException as error:
        raise AssertionError(f"{line}: {error.format_message()}") from error
    return path


@pytest.mark.parametrize("name", [name for name in NAMES if list(command_lines(name))])
def test_every_command_line_parses(name: str) -> None:
    for line in command_lines(name):
        checked(line)


@pytest.mark.parametrize("name", NAMES)
def test_every_command_that_is_named_exists(name: str) -> None:
    for code in codes(name):
        words = code.split()
        if words[:1] != ["pythia"] or len(words) == 1:
            continue
        path = "pythia"
        for word in words[1:]:
            alternatives = [each for each in word.split("|") if each]
            if f"{path} {alternatives[0]}" not in everything() if alternatives else True:
                break
            assert all(f"{path} {each}" in everything() for each in alternatives), f"{name}: `{code}`"
            path = f"{path} {alternatives[0]}"
        assert path != "pythia" or words[1] in ("--help", "--version", "COMMAND"), f"{name}: `{code}`"
        options = {option for each in everything()[path][1].params for option in (*each.opts, *each.secondary_opts)} \
            if path != "pythia" else {"--help", "--version"}  # fmt: skip
        for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", code):
            assert option in options | {"--help"}, f"{name}: `{code}`: {path} has no {option}"


def test_every_command_is_in_the_documentation() -> None:
    documented = text_of("docs/command-line.md")
    for path in leaves():
        assert f"### {path}\n" in documented


def test_every_option_that_is_named_alone_exists() -> None:
    known = {option for _, command in everything().values() for each in command.params for option in each.opts}
    known |= {
        option for _, command in everything().values() for each in command.params for option in each.secondary_opts
    }
    for name in NAMES:
        for code in codes(name):
            option = re.match(r"--[a-z][a-z0-9-]*", code)
            if option is not None:
                assert option[0] in known | {"--help", "--version", "--network", "--volumes", "--story"}, (
                    f"{name}: `{code}`"
                )


def test_every_setting_and_variable_that_is_named_exists() -> None:
    options = [each for _, command in everything().values() for each in command.params]
    known = {each.envvar for each in options if isinstance(each.envvar, str)}
    known |= {setting.environment for section in all_sections() for setting in section.settings}
    for name in NAMES:
        for variable in re.findall(r"\bPYTHIA_[A-Z_]+\b", text_of(name)):
            assert variable in known or variable in words_of_the_code(), f"{name}: {variable}"


def test_every_identifier_that_is_named_is_in_the_code() -> None:
    """Settings, limits, functions, fields: what is written like one. The changelog tells what there was, too."""
    for name in set(NAMES) - {"CHANGELOG.md"}:
        for code in codes(name):
            for word in re.findall(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b", re.sub(r"[\w.-]+(?:/[\w.-]+)+", "", code)):
                is_known = family_named(word) is not None or word in OWN_TABLES
                assert is_known or word in words_of_the_code(), f"{name}: `{code}`: {word} is not in the code"


def test_every_metric_that_is_named_exists_and_every_one_is_named() -> None:
    everywhere = "\n".join(map(text_of, NAMES))
    for word in set(re.findall(r"\bpythia_[a-z_]+", everywhere)):
        assert family_named(word) is not None or word in words_of_the_code() | OWN_TABLES | {"pythia_clients"}, word
    for family in FAMILIES:
        assert family.name in everywhere


def test_every_route_is_named_and_every_route_that_is_named_exists() -> None:
    def connect() -> object:
        raise AssertionError("nothing is served here")

    app = create_app(connect, RestLimits())  # type: ignore[arg-type]
    known = set(app.openapi()["paths"]) | {str(app.openapi_url)}
    shapes = {re.sub(r"\{[^}]*\}", "{}", route) for route in known}
    page = text_of("docs/rest.md")
    for route in known:
        literal = [part for part in route.split("/") if part and not part.startswith("{")]
        assert f"/{literal[-1]}" in page, f"docs/rest.md says nothing of {route}"
    for name in NAMES:
        for code in codes(name):
            for route in re.findall(r"(?:^| )(/v1/[\w/{}.-]*[\w}])", code):
                assert re.sub(r"\{[^}]*\}", "{}", route) in shapes or any(each.startswith(route) for each in known), (
                    f"{name}: {route}"
                )


@pytest.mark.parametrize("name", NAMES)
def test_every_file_that_is_named_exists(name: str) -> None:
    for code in codes(name):
        for path in re.findall(
            r"(?:^|(?<=[\s(]))((?:[a-z_]+/)+[\w.-]*\.(?:py|md|yml|json|toml|sha256))(?=$|[\s):,`])", code
        ):
            near = [ROOT / path, (ROOT / name).parent / path, *(ROOT / room / path for room in SOURCES)]
            assert any(each.exists() for each in near), f"{name}: {path}"


@pytest.mark.parametrize("name", NAMES)
def test_every_folder_that_is_named_exists(name: str) -> None:
    for code in codes(name):
        for folder in re.findall(rf"(?:^|(?<=[\s(]))((?:{'|'.join(SOURCES)})/(?:[\w.-]+/)*)(?=$|[\s),])", code):
            assert (ROOT / folder).is_dir(), f"{name}: {folder}"


@pytest.mark.parametrize("name", NAMES)
def test_a_module_that_is_named_without_its_folder_lies_beside_the_one_before_it(name: str) -> None:
    for line in prose(name).splitlines():
        folder = None
        for path in map(Path, re.findall(r"`([\w./-]+\.py)`", line)):
            if len(path.parts) > 1:
                folder = path.parent
            elif folder is not None:
                assert (ROOT / folder / path).exists(), f"{name}: {path} is not in {folder}"


@pytest.mark.parametrize("place", [*NAMES, *SOURCES, "Makefile", "pyproject.toml", "setup.py", "docker-compose.yml"])
def test_every_module_of_a_room_that_is_named_anywhere_exists(place: str) -> None:
    """In diagrams, comments and lists too."""
    where = ROOT / place
    for path in [where] if where.is_file() else sorted(where.rglob("*")):
        if path.suffix in (".py", ".md", ".toml", ".yml", ".js", "") and path.is_file():
            said = path.read_text("utf-8", "ignore")
            for named in re.findall(rf"(?<![\w./-])((?:{'|'.join(SOURCES)})/(?:\w+/)*\w+\.py)\b", said):
                assert (ROOT / named).exists(), f"{path.relative_to(ROOT)}: {named}"


@pytest.mark.parametrize("name", [name for name in NAMES if any(block.language == "python" for block in blocks(name))])
def test_every_program_is_python(name: str) -> None:
    for block in blocks(name):
        if block.language == "python":
            ast.parse(block.text.replace("…", "..."))


@pytest.mark.parametrize("name", [name for name in NAMES if any(block.language == "toml" for block in blocks(name))])
def test_every_file_of_settings_or_tokens_has_no_mistake(name: str, tmp_path: Path) -> None:
    for block in blocks(name):
        if block.language == "toml":
            file = tmp_path / "shown.toml"
            file.write_text(block.text)
            check = tokens if "[tokens." in block.text else settings
            result = CliRunner().invoke(check, ["check", str(file)])
            assert result.exit_code == 0, f"{name}: {result.output}"


def test_the_pages_are_all_of_them() -> None:
    assert all(page.exists() for page in PAGES)
    assert len(NAMES) > 20
    assert all(prose(name).startswith("# ") for name in NAMES)
