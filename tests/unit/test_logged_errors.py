"""Errors are logged as text: a record that keeps one keeps its traceback, and all that it passed through with it.

Handlers may keep records as long as they like, as those of pytest and of services that gather errors do. A snapshot in
such a traceback would be spoken for as long, and hold back the vacuum; a write buffer would take its memory.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.imports import ROOT
from tests.unit.test_import_directions import ALLOWED

LEVELS = {"debug", "info", "warning", "error", "critical", "log", "exception"}
LOGGERS = {"log", "_log"}


def errors_kept(source: str) -> Iterator[int]:
    """The lines in which an error that was caught is handed to a logger as it is."""
    for handler in ast.walk(ast.parse(source)):
        if isinstance(handler, ast.ExceptHandler) and handler.name:
            for call in ast.walk(handler):
                if isinstance(call, ast.Call) and _is_logging(call.func):
                    yield from (given.lineno for given in call.args if _is_named(given, handler.name))


def _is_logging(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr in LEVELS and _is_named(function.value, *LOGGERS)


def _is_named(given: ast.expr, *names: str) -> bool:
    return isinstance(given, ast.Name) and given.id in names


def test_no_record_keeps_an_error() -> None:
    paths = [path for room in ALLOWED for path in (ROOT / room).rglob("*.py")]
    kept = [f"{path.relative_to(ROOT)}:{line}" for path in paths for line in errors_kept(path.read_text())]
    assert kept == [], "log str(error)"


def test_what_keeps_an_error_is_found() -> None:
    source = "try:\n    f()\nexcept E as error:\n    if x:\n        _log.warning('%s', {})\n"
    assert list(errors_kept(source.format("error"))) == [5]
    assert list(errors_kept(source.format("str(error)"))) == []
