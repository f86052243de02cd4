"""The log: one line a record, with the role and the epoch of its moment."""

from __future__ import annotations

import json
import logging

import pytest

from logs import Repetition
from logs.lines import FORMATS, Standing, configure_logs

log = logging.getLogger("tests.logged")


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_json_lines_carry_role_and_epoch_as_they_change(capsys: pytest.CaptureFixture[str]) -> None:
    standing = Standing()
    configure_logs("info", "json", standing)
    log.info("first %d", 1)
    standing.set("primary", 42)
    log.warning("second")
    first, second = map(json.loads, lines(capsys))
    assert (first["role"], first["epoch"], first["message"], first["level"]) == ("standby", 0, "first 1", "info")
    assert (second["role"], second["epoch"], second["logger"]) == ("primary", 42, "tests.logged")
    assert second["time"].endswith("+00:00")


def test_text_lines_carry_them_too(capsys: pytest.CaptureFixture[str]) -> None:
    standing = Standing()
    standing.set("primary", 42)
    configure_logs("warning", "text", standing)
    log.info("not shown")
    log.warning("shown")
    [line] = lines(capsys)
    assert " WARNING primary 42 " in line
    assert line.endswith("tests.logged: shown")


@pytest.mark.parametrize("log_format", FORMATS)
def test_a_record_is_one_line_whatever_is_in_it(capsys: pytest.CaptureFixture[str], log_format: str) -> None:
    configure_logs("info", log_format, Standing())
    try:
        raise ValueError("two\nlines")
    except ValueError:
        log.exception("sent by a client:\r\n2030 INFO primary\u2028forged\x85")
    [line] = lines(capsys)
    assert "forged" in line
    assert "Traceback" in line


def test_what_repeats_is_held_back(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("info", "text", Standing())
    for number in range(Repetition.ALIKE_MAX + 5):
        log.warning("from host %d", number)
    shown = lines(capsys)
    assert len(shown) == Repetition.ALIKE_MAX
    assert shown[-1].endswith("(more like it are not shown for 10 s)")
