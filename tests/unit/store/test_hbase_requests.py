"""Requests within their limits, whatever is put; settings without a limit that is none."""

from __future__ import annotations

import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import RowPut
from store.garbage import collector_paused
from store.hbase import PoolSettings, RequestLimits
from store.hbase.requests import delete_columns_requests, pieces, put_requests

row_puts = st.builds(
    RowPut,
    st.binary(min_size=1, max_size=4),
    st.dictionaries(st.sampled_from([b"f:a", b"f:b", b"f:c"]), st.binary(max_size=30), min_size=1),
)


def size(put: RowPut) -> int:
    return len(put.row) + sum(len(column) + len(value) for column, value in put.columns.items())


@given(st.lists(row_puts, max_size=30), st.integers(1, 9), st.integers(1, 200))
def test_every_request_keeps_the_limits_and_nothing_is_lost(
    puts: list[RowPut], rows_max: int, request_bytes_max: int
) -> None:
    limits = RequestLimits(rows_max=rows_max, request_bytes_max=request_bytes_max)
    requests = [
        [RowPut(each.row, {m.column: m.value for m in each.mutations}) for each in request]
        for request in put_requests(puts, limits)
    ]
    assert [put for request in requests for put in request] == puts
    for request in requests:
        assert 1 <= len(request) <= rows_max
        assert len(request) == 1 or sum(map(size, request)) <= request_bytes_max


@given(
    st.dictionaries(st.binary(min_size=1, max_size=4), st.lists(st.binary(max_size=9).map(b"f:".__add__)), max_size=30),
    st.integers(1, 9),
    st.integers(1, 100),
)
def test_deletes_of_columns_keep_the_limits_too_and_none_is_without_a_column(
    columns: dict[bytes, list[bytes]], rows_max: int, request_bytes_max: int
) -> None:
    limits = RequestLimits(rows_max=rows_max, request_bytes_max=request_bytes_max)
    requests = list(delete_columns_requests(columns, limits))
    sent = {each.row: [m.column for m in each.mutations if m.isDelete] for request in requests for each in request}
    assert sent == {row: chosen for row, chosen in columns.items() if chosen}
    for request in requests:
        assert 1 <= len(request) <= rows_max
        request_bytes = sum(len(each.row) + sum(len(m.column) for m in each.mutations) for each in request)
        assert len(request) == 1 or request_bytes <= request_bytes_max


@given(st.lists(st.integers()), st.integers(1, 7))
def test_pieces(items: list[int], most: int) -> None:
    parts = list(pieces(items, most))
    assert [item for part in parts for item in part] == items
    assert all(1 <= len(part) <= most for part in parts)


def test_a_limit_is_positive() -> None:
    with pytest.raises(ValueError, match="connections_max must be at least 1, not 0"):
        PoolSettings(connections_max=0)
    with pytest.raises(ValueError, match="idle_ms_max must be at least 1, not -5"):
        PoolSettings(idle_ms_max=-5)
    with pytest.raises(ValueError, match="rows_max must be at least 1"):
        RequestLimits(rows_max=-1)


def test_the_collector_runs_again_after_a_pause_unless_it_was_off() -> None:
    assert gc.isenabled()
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), collector_paused():
        raise KeyError
    assert gc.isenabled()
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
