"""Settings: what cannot work is refused with the reason."""

from __future__ import annotations

import pytest

from configuration import Setting
from configuration.checking import Wrong
from tso.options import limits_of
from tso.settings import LIMITS, InvalidSettings, Limits, ServeSettings, lease_settings, parse_listen


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"connections_max": 0}, "connections_max must be larger than 0"),
        ({"drain_ms_max": -1}, "drain_ms_max must be larger than 0"),
        ({"commit_share_max": 1.5}, "1 at most"),
        ({"begins_per_ms_max": 2**18 + 1}, "a millisecond holds no more"),
        ({"begin_count_max": 10**7}, "could never be granted"),
        ({"conflict_map_entries_max": 1}, "no room for one cell"),
        ({"transactions_in_flight_max": 2_000, "remembered_decisions_max": 1_999}, "could be forgotten before"),
        ({"lookup_ids_max": 20_000}, "could never be taken"),
        ({"frame_bytes_max": 16}, "frame_bytes_max"),
        ({"receive_bytes_max": 1000}, "frame_bytes_max"),
        ({"transactions_in_flight_max": 2_000_000}, "must fit"),
    ],
)
def test_limits_that_cannot_work_are_refused(limits: dict[str, float], reason: str) -> None:
    with pytest.raises(InvalidSettings, match=reason):
        Limits(**limits)  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", LIMITS.settings, ids=lambda limit: limit.name)
def test_a_limit_that_would_bound_nothing_is_refused(limit: Setting) -> None:
    with pytest.raises(Wrong, match=f"{limit.name} must be .* at most.*, not '1000000000000'"):
        limits_of({}, [f"{limit.name}=1000000000000"])
    with pytest.raises(InvalidSettings, match=f"{limit.name} must be .* at most, not 1000000000000"):
        Limits(**{limit.name: 1000000000000})


@pytest.mark.parametrize("share", ["nan", "inf"])
def test_a_share_that_is_no_number_is_refused(share: str) -> None:
    with pytest.raises(Wrong, match="commit_share_max"):
        limits_of({}, [f"commit_share_max={share}"])
    with pytest.raises(InvalidSettings, match="commit_share_max must be"):
        Limits(commit_share_max=float(share))


def test_limits_are_parsed_from_texts() -> None:
    assert limits_of({}, []) == Limits()
    assert limits_of({"PYTHIA_LIMITS": "connections_max=7"}, ["connections_max=5"]).connections_max == 5
    assert limits_of({"PYTHIA_LIMITS": "connections_max=7"}, []).connections_max == 7
    changed = limits_of({}, ["connections_max=5", "commit_share_max = 0.25"])
    assert changed == Limits(connections_max=5, commit_share_max=0.25)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("conections_max=5", "there is no limit"),
        ("connections_max", "needs a number"),
        ("connections_max=x", "number"),
        ("=", "no limit"),
    ],
)
def test_a_limit_that_is_not_one_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Wrong, match=reason):
        limits_of({}, [text])


def test_a_commits_share_of_the_map() -> None:
    assert Limits(conflict_map_entries_max=1000, commit_share_max=0.25).commit_cells_max == 250


@pytest.mark.parametrize(("text", "address"), [("127.0.0.1:0", ("127.0.0.1", 0)), ("[::1]:54", ("::1", 54))])
def test_addresses_to_listen_on(text: str, address: tuple[str, int]) -> None:
    assert parse_listen(text) == address


@pytest.mark.parametrize("text", ["", "5480", ":5480", "host:", "host:port", "host:٣"])
def test_what_is_no_address_to_listen_on_is_refused(text: str) -> None:
    with pytest.raises(InvalidSettings, match="host:port"):
        parse_listen(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("host:65536", "a port lies in 0…65535"),
        (f"host:{'9' * 5_000}", "a port lies in 0…65535"),
        ("a..b:1", "'a..b' cannot be the name of a host"),
        (f"{'a' * 64}:1", "cannot be the name of a host"),
    ],
)
def test_what_nobody_could_listen_on_is_refused_before_anybody_tries(text: str, reason: str) -> None:
    with pytest.raises(InvalidSettings, match=reason):
        parse_listen(text)


def test_listening_everywhere_needs_an_address_to_advertise() -> None:
    with pytest.raises(InvalidSettings, match="name an address to advertise"):
        ServeSettings("a", "z:1", "t:1", listen_host="0.0.0.0")
    ServeSettings("a", "z:1", "t:1", listen_host="0.0.0.0", advertise="oracle:5480")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [({"name": "no spaces"}, "letters"), ({"advertise": "nowhere"}, "host:port"), ({"root": "pythia"}, "/pythia")],
)
def test_what_the_coordinator_could_not_store_is_refused_at_once(wrong: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidSettings, match=reason):
        ServeSettings(**{"name": "a", "zookeeper": "z:1", "thrift": "t:1", **wrong})  # type: ignore[arg-type]


def test_a_port_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidSettings, match="0…65535"):
        ServeSettings("a", "z:1", "t:1", listen_port=70_000)


def test_lease_settings_keep_the_lease_rooms_reason() -> None:
    assert lease_settings(3000, 4).lease_ms == 3000
    with pytest.raises(InvalidSettings, match="lease_ms"):
        lease_settings(1, 4)
