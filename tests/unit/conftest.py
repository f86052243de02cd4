"""What unit tests of several rooms share."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who signs the certificates of a module's tests."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    """After a test in which a command has configured the log of its process, which is this one."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
