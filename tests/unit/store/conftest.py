"""What tests of the adapter for HBase share: a gateway of our own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.store.fake_gateway import FakeGateway


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    fake = FakeGateway()
    yield fake
    fake.stop()
