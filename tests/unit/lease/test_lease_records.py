"""Records come back as they were written; anything else is refused, never misread as free."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lease.errors import RecordInvalid
from lease.records import ADDRESSES_MAX, RECORD_BYTES_MAX, TIMESTAMP_MAX, EpochRecord, LeaseRecord, Member

RECORD = LeaseRecord(
    holder="tso-1", nonce="n1", addresses=("127.0.0.1:4000",), epoch=1 << 18, released=False, lease_ms=2000
)
NAMES = st.from_regex(r"[A-Za-z0-9._-]{1,100}", fullmatch=True)
ADDRESSES = st.builds("{}:{}".format, st.from_regex(r"[a-z0-9.-]{1,40}", fullmatch=True), st.integers(1, 65_535))
RECORDS = st.builds(
    LeaseRecord,
    holder=NAMES,
    nonce=NAMES,
    addresses=st.lists(ADDRESSES, min_size=1, max_size=ADDRESSES_MAX).map(tuple),
    epoch=st.integers(1, TIMESTAMP_MAX),
    released=st.booleans(),
    lease_ms=st.integers(100, 600_000),
)


@given(RECORDS)
def test_a_lease_record_comes_back_as_it_was_written(record: LeaseRecord) -> None:
    assert LeaseRecord.parse(record.encode()) == record


@given(st.integers(1, TIMESTAMP_MAX - 1), st.data())
def test_an_epoch_record_comes_back_as_it_was_written(epoch: int, data: st.DataObject) -> None:
    ceiling = data.draw(st.integers(epoch + 1, TIMESTAMP_MAX))
    record = EpochRecord(epoch, ceiling, data.draw(st.integers(epoch, ceiling - 1)))
    assert EpochRecord.parse(record.encode()) == record


def test_a_member_comes_back_as_it_was_written() -> None:
    member = Member("tso-1", "standby", "[::1]:4000")
    assert Member.parse(member.encode()) == member


@given(st.binary(max_size=200))
def test_rubbish_is_refused(data: bytes) -> None:
    for parse in (LeaseRecord.parse, EpochRecord.parse, Member.parse):
        with pytest.raises(RecordInvalid):
            parse(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner), max_leaves=5
)


@given(st.sampled_from(["format", "holder", "nonce", "addresses", "epoch", "released", "lease_ms"]), JSON)
def test_a_field_of_another_kind_is_refused_or_valid(name: str, value: Any) -> None:
    fields = {**json.loads(RECORD.encode()), name: value}
    try:
        parsed = LeaseRecord.parse(json.dumps(fields).encode())
    except RecordInvalid:
        return
    assert json.loads(parsed.encode()) == fields


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 16_000, "not JSON"),
        (b'{"format":' + b"9" * 5000 + b"}", "not JSON"),
        (b"[1]", "no format version"),
        (b'{"format":true}', "format version"),
        (b'{"format":0}', "format version"),
        (b'{"format":1}', "fields"),
        (b" " * (RECORD_BYTES_MAX + 1), "bytes"),
        (RECORD.encode().replace(b'"released":false', b'"released":0'), "released"),
        (RECORD.encode().replace(b"tso-1", b"a/b"), "holder"),
        (RECORD.encode().replace(b":4000", b":70000"), "addresses"),
    ],
)
def test_the_error_says_what_is_wrong(data: bytes, reason: str) -> None:
    with pytest.raises(RecordInvalid, match=reason):
        LeaseRecord.parse(data)


def test_a_newer_format_is_refused_with_advice() -> None:
    newer = RECORD.encode().replace(b'"format":1', b'"format":2')
    with pytest.raises(RecordInvalid, match="upgrade this program first"):
        LeaseRecord.parse(newer)


@pytest.mark.parametrize("ceiling", [4, 5, TIMESTAMP_MAX + 1])
def test_an_epoch_needs_room_below_its_ceiling(ceiling: int) -> None:
    with pytest.raises(RecordInvalid, match="ceiling"):
        EpochRecord(5, ceiling, 5)


def test_importing_the_room_does_not_import_kazoo() -> None:
    command = "import sys, lease, lease.memory; sys.exit('kazoo' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], check=False, timeout=60).returncode == 0
