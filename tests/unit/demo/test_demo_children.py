from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.children import Message, Process, Talker
from demo.errors import ProcessFailed

LIMIT_SECONDS = 60.0
ECHO = ("json.tool", ["--json-lines", "--compact"])
"""A module of Python's own that answers a line of JSON with the same line."""


@contextmanager
def talking(module: str, arguments: list[str], log: Path, heard: list[Message]) -> Iterator[Talker]:
    talker = Talker("the echo", module, arguments, log, heard.append)
    try:
        yield talker
    finally:
        talker.stop()


def test_what_a_child_says_is_taken(tmp_path: Path) -> None:
    heard: list[Message] = []
    with talking(*ECHO, tmp_path / "echo.log", heard) as echo:
        echo.send({"month": 1})
        assert echo.process.stdin is not None
        echo.process.stdin.close()  # the echo writes when it has read everything
        echo.wait_until(lambda: bool(heard), "answer", LIMIT_SECONDS)
    assert heard == [{"month": 1}]
    assert not echo.process.is_running()


def test_a_child_that_ends_early_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    with (
        talking("no_such_module", [], tmp_path / "missing.log", []) as missing,
        pytest.raises(ProcessFailed, match=r"exit code 1 but did not answer(.|\n)*No module named no_such_module"),
    ):
        missing.wait_until(lambda: False, "answer", LIMIT_SECONDS)


def test_a_child_that_says_nothing_is_told_at_the_limit(tmp_path: Path) -> None:
    with (
        talking(*ECHO, tmp_path / "echo.log", []) as echo,
        pytest.raises(ProcessFailed, match="is running but did not answer within 0 s"),
    ):
        echo.wait_until(lambda: False, "answer", 0.05)


def test_the_output_of_a_process_is_waited_for(tmp_path: Path) -> None:
    process = Process("a tokenizer", ["tokenize", "--help"], tmp_path / "tokenize.log")
    try:
        assert process.wait_for_output("usage:", LIMIT_SECONDS).startswith("usage: python -m tokenize")
    finally:
        process.stop()


def test_a_killed_process_has_ended(tmp_path: Path) -> None:
    process = Process("a server", ["http.server", "--bind", "127.0.0.1", "0"], tmp_path / "server.log")
    process.wait_for_output("Serving HTTP", LIMIT_SECONDS)
    process.kill()
    assert not process.is_running()


def test_output_that_cannot_come_any_more_is_not_waited_for(tmp_path: Path) -> None:
    process = Process("a tokenizer", ["tokenize", "--help"], tmp_path / "tokenize.log")
    try:
        with pytest.raises(ProcessFailed, match="did not say 'serving on…'"):
            process.wait_for_output("serving on", LIMIT_SECONDS)
    finally:
        process.stop()
