"""An installation of twins whose tables the tests make."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from client import TransactionManager
from tests.unit.client.conftest import Installation


@pytest.fixture
def installation() -> Iterator[Installation]:
    """One primary oracle, and no table."""
    made = Installation()
    made.serve()
    yield made
    made.close()


@pytest.fixture
def manager(installation: Installation) -> TransactionManager:
    return installation.manager()
