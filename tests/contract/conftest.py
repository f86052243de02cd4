"""The stores of the contract, each with a table that a module's tests share: the twin, HBase, and HBase by frames.

The twin and HBase once more with shadow cells in a family of their own, of which nothing is to be seen.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator

import pytest

from store import CellStore, Family, MemoryCellStore
from store.hbase import HBaseCellStore, RequestLimits
from tests.contract.shadows_apart import ShadowsApart

_numbers = itertools.count()


_REAL = {"hbase": "services", "hbase, framed": "framed", "hbase, shadows apart": "services"}


@pytest.fixture(
    scope="module",
    params=[
        "memory",
        "memory, shadows apart",
        *(pytest.param(name, marks=pytest.mark.integration) for name in _REAL),
    ],
)
def store(request: pytest.FixtureRequest) -> Iterator[CellStore]:
    opened: CellStore
    if request.param not in _REAL:
        opened = MemoryCellStore()
    else:
        address = request.getfixturevalue(_REAL[request.param]).thrift
        opened = HBaseCellStore(address, limits=RequestLimits(rows_max=7, request_bytes_max=2_000))
    if "apart" in request.param:
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
