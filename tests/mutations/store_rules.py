"""Broken rules of the store's adapter for HBase: what its gateway's answers mean, how much is asked for, who waits."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_GATEWAY = "unit/store/test_hbase_gateway.py::"
_REGIONS = _GATEWAY + "TestRegions::"

STORE_RULES = [
    Mutation(
        "each replica of a region is a range to read",
        "store/hbase/regions.py",
        "sorted(set(named))",
        "sorted(named)",
        _REGIONS + "test_a_region_with_replicas_is_one_range",
    ),
    Mutation(
        "a gap or an overlap between regions is handed on",
        "store/hbase/regions.py",
        "        if not left.stop or left.stop != right.start:",
        "        if False:",
        _REGIONS + "test_regions_with_a_gap_or_an_overlap_are_asked_for_again",
    ),
    Mutation(
        "a scan cannot go on after the longest row key",
        "store/validation.py",
        "ROW_KEY_BYTES_MAX + 1",
        "ROW_KEY_BYTES_MAX",
        "unit/store/test_store_validation.py unit/client/test_reading.py",
    ),
    Mutation(
        "a connection in use is waited for like a full pool, while others are idle",
        "store/hbase/pool.py",
        "                    if not self._changed.wait(min(preferred_until, deadline) - self._monotonic()):\n"
        "                        prefer = None\n",
        "                    self._wait(deadline)\n",
        "unit/store/test_store_pool.py::test_only_a_full_pool_is_told_to_be_full",
    ),
]
