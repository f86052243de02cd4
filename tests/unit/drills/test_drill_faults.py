from __future__ import annotations

from collections import Counter
from random import Random

from drills.campaign import EXPENSIVE, mixed
from drills.faults import FAULTS
from drills.network_faults import CutOff
from drills.proxy import Mode


def test_every_fault_has_a_name_of_its_own_and_a_sentence() -> None:
    assert len({fault.sentence for fault in FAULTS.values()}) == len(FAULTS)
    for name, fault in FAULTS.items():
        assert fault.name == name
        assert name == name.lower().strip()
        assert len(fault.sentence) > 20
        assert not fault.sentence.endswith(".")
        assert 0 <= fault.hold_ms[0] <= fault.hold_ms[1] <= 10_000


def test_a_primary_can_lose_each_side_in_both_ways() -> None:
    cuts = {name for name, fault in FAULTS.items() if issubclass(fault, CutOff)}
    assert cuts == {f"{how}-{side}" for how in ("cut", "hole") for side in ("zookeeper", "hbase", "clients", "all")}
    for name in cuts:
        fault = FAULTS[name]
        assert issubclass(fault, CutOff)
        assert fault.mode is (Mode.CUT if name.startswith("cut") else Mode.BLACK_HOLE)


def test_a_long_mixed_campaign_has_each_fault_twice_and_no_more_of_the_expensive_ones() -> None:
    kinds = list(FAULTS.values())
    planned = Counter(kind.name for kind in mixed(kinds, 100, Random(7)))
    assert planned.total() == 100
    assert min(planned[name] for name in FAULTS) == 2
    assert {name: planned[name] for name in EXPENSIVE} == dict.fromkeys(EXPENSIVE, 2)


def test_a_short_mixed_campaign_has_different_faults_and_follows_its_seed() -> None:
    kinds = list(FAULTS.values())
    planned = mixed(kinds, 5, Random(7))
    assert len(set(planned)) == 5
    assert planned == mixed(kinds, 5, Random(7))
    assert set(mixed(kinds[:1], 3, Random(7))) == {kinds[0]}
