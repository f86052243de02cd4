"""The stores of the contract, each with a table that a module's tests share: the twin, and HBase by each transport.

The twin and HBase once more with shadow cells in a family of their own, of which nothing is to be seen.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator

import pytest

from store import CellStore, Family, MemoryCellStore
from store.hbase import HBaseCellStore, PoolSettings, RequestLimits
from tests.conftest import Services
from tests.contract.shadows_apart import ShadowsApart

_numbers = itertools.count()


_REAL = {
    "hbase": "services",
    "hbase, framed": "framed",
    "hbase, TLS": "secured",
    "hbase, HTTP": "by_http",
    "hbase, shadows apart": "services",
}


@pytest.fixture(
    scope="module",
    params=[
        "memory",
        "memory, shadows apart",
        *(pytest.param(name, marks=pytest.mark.integration) for name in _REAL),
    ],
)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def reached(kind: str, request: pytest.FixtureRequest) -> Services | None:
    """Where the real one is."""
    if kind not in _REAL:
        return None
    services: Services = request.getfixturevalue(_REAL[kind])
    return services


@pytest.fixture(scope="module")
def parts(kind: str) -> bool:
    """Whether it makes tables of several regions: without a Thrift 2 gateway HBase does not."""
    return kind not in ("hbase, framed", "hbase, TLS", "hbase, HTTP")


@pytest.fixture(scope="module")
def store(kind: str, reached: Services | None, parts: bool, request: pytest.FixtureRequest) -> Iterator[CellStore]:
    opened: CellStore
    if reached is None:
        opened = MemoryCellStore()
    else:
        limits = RequestLimits(rows_max=7, request_bytes_max=2_000)
        thrift2: str = request.getfixturevalue("thrift2") if parts else ""
        opened = HBaseCellStore(reached.thrift, PoolSettings(tls=reached.tls), limits, thrift2=thrift2)
    if "apart" in kind:
        opened = ShadowsApart(opened)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def table(store: CellStore) -> Iterator[str]:
    name = f"contract_{uuid.uuid4().hex[:12]}"
    store.create_table(name, [Family("f"), Family("g"), Family("latest", versions_max=1)])
    yield name
    store.drop_table(name)


@pytest.fixture
def row() -> bytes:
    """A key below which no other test writes."""
    return b"row-%08d" % next(_numbers)
