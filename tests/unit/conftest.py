"""What unit tests of several rooms share."""

from __future__ import annotations

import pytest

from tests.certificates import Authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who signs the certificates of a module's tests."""
    return Authority(tmp_path_factory.mktemp("authority"))
