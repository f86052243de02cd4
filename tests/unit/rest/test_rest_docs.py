"""What docs/rest.md shows is run as it stands: its shell lines by a shell, its Python by Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.imports import ROOT
from tests.unit.rest.conftest import Served

DOCS = (ROOT / "docs" / "rest.md").read_text()
MARK = "=== end of block ==="


def shown(expected: str) -> re.Pattern[str]:
    """What an answer must look like; … stands for anything."""
    return re.compile(".*".join(re.escape(part) for part in expected.strip().split("…")))


def test_the_examples_do_what_they_show(served: Served) -> None:
    if shutil.which("curl") is None:
        pytest.skip("NOT TESTED: the examples of docs/rest.md. There is no curl")
    blocks = re.findall(r"^```sh\n(.*?)^```\n\n```text\n(.*?)^```", DOCS, re.MULTILINE | re.DOTALL)
    assert len(blocks) == DOCS.count("```sh\n") >= 4, "each block of shell lines is followed by what it prints"
    script = f"echo '{MARK}'\n".join(f"{lines}" for lines, _ in blocks)
    environment = {**os.environ, "REST": served.rest.url, "NO_PROXY": "*"}
    done = subprocess.run(["bash", "-eu", "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split(f"{MARK}\n")
    for (lines, expected), output in zip(blocks, printed, strict=True):
        assert shown(expected).fullmatch(output.strip()), f"{lines}\nprinted\n{output}\nand not\n{expected}"
    assert served.manager.snapshot().get("audit", b"2026-11-21/1") == {b"d:what": b"alice to bob: 30"}
    assert_python_transfers(served)


def assert_python_transfers(served: Served) -> None:
    before = served.manager.snapshot().get("accounts", b"bob")
    (program,) = re.findall(r"^```python\n(.*?)^```", DOCS, re.MULTILINE | re.DOTALL)
    environment = {**os.environ, "REST": served.rest.url, "NO_PROXY": "*"}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=60)
    after = served.manager.snapshot().get("accounts", b"bob")
    assert int(after[b"d:balance"]) == int(before[b"d:balance"]) + 10


def test_a_block_that_prints_something_else_is_noticed() -> None:
    assert not shown('{"a":…}').fullmatch('{"b":1}')
    assert shown('{"a":…}\n{"b":…}').fullmatch('{"a":1}\n{"b":2}')
