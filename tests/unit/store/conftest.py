"""What tests of the adapter for HBase share: a gateway of our own, and who signs its certificate."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from access.server_files import ServerFiles
from tests.certificates import Authority
from tests.unit.store.fake_gateway import FakeGateway


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    fake = FakeGateway()
    yield fake
    fake.stop()


@pytest.fixture(scope="module")
def server_files(authority: Authority) -> ServerFiles:
    return authority.issue("gateway")
