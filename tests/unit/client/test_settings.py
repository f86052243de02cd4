"""Settings and handles: refused when they cannot work, and the same after a journey."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from client import ClientSettings, InvalidRequest, SnapshotHandle, TransactionHandle

SETTINGS = ClientSettings(zookeeper="127.0.0.1:2181,127.0.0.1:2182", thrift="127.0.0.1:9090", root="/team/pythia")


@pytest.mark.parametrize(
    "wrong",
    [
        {"zookeeper": "nowhere"},
        {"zookeeper": ""},
        {"thrift": "host:0"},
        {"thrift": "host:port"},
        {"thrift2": "host:port"},
        {"thrift2": "a:1,,b:2"},
        {"thrift2": None},
        {"thrift": "a:1,b"},
        {"thrift": "a:1,,b:2"},
        {"thrift": "a:1,a:01"},
        {"root": "pythia"},
        {"root": "/"},
        {"root": "/pythia/"},
        {"root": "/a b"},
        {"root": "/-x"},
        {"root": "/a.b"},
        {"root": "/" + "a" * 300},
        {"root": 7},
        {"zookeeper": None},
        {"thrift": "host:²"},
        {"thrift": "host:" + "9" * 5_000},
        {"heal": "no"},
        {"bulk_shadow_cells": "never"},
        {"bulk_shadow_cells": False},
        {"deadline_ms": True},
        {"deadline_ms": 0},
        {"deadline_ms": 1.5},
        {"request_timeout_ms": -1},
        {"transaction_bytes_max": 2**50},
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        ClientSettings(**({"zookeeper": "127.0.0.1:2181", "thrift": "127.0.0.1:9090"} | wrong))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"thrift": ""}, "thrift is missing"),
        ({"thrift": "h"}, "thrift: the address of HBase's Thrift gateway is host:port"),
        ({"thrift2": "h"}, "thrift2: the address of HBase's Thrift gateway is host:port"),
        ({"zookeeper": "h:1,x"}, "zookeeper: ZooKeeper's hosts are host:port"),
    ],
)
def test_an_address_that_is_missing_or_wrong_is_told_with_its_setting(wrong: dict[str, str], told: str) -> None:
    with pytest.raises(InvalidRequest, match=told):
        ClientSettings(**({"zookeeper": "h:1", "thrift": "h:2"} | wrong))  # type: ignore[arg-type]


def test_settings_travel_as_text() -> None:
    assert ClientSettings.from_json(SETTINGS.to_json()) == SETTINGS


@pytest.mark.parametrize("handle", [SnapshotHandle(20, 10, SETTINGS), TransactionHandle(30, 20, 10, SETTINGS)])
def test_handles_travel_as_text_and_pickled(handle: SnapshotHandle | TransactionHandle) -> None:
    assert type(handle).from_json(handle.to_json()) == handle
    assert pickle.loads(pickle.dumps(handle)) == handle


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '{"a": 1}', "{}", "[" * 100_000])
def test_rubbish_is_no_handle(text: str) -> None:
    with pytest.raises(InvalidRequest, match="transaction handle"):
        TransactionHandle.from_json(text)


@pytest.mark.parametrize(
    ("start", "snapshot", "epoch"), [(10, 20, 5), (30, 20, 25), (0, 0, 0), (2**63 - 1, 2, 1), (20, 20, 5)]
)
def test_a_handle_with_timestamps_out_of_order_is_refused(start: int, snapshot: int, epoch: int) -> None:
    fields = json.loads(TransactionHandle(30, 20, 10, SETTINGS).to_json())
    fields |= {"start_timestamp": start, "snapshot_timestamp": snapshot, "epoch": epoch}
    with pytest.raises(InvalidRequest, match="order"):
        TransactionHandle.from_json(json.dumps(fields))
