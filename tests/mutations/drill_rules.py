"""Broken rules of the drills: one that measures wrongly, or hurts less than it says, would find everything in order."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_FAULTS = "unit/drills/test_compose_faults.py::"

DRILL_RULES = [
    Mutation(
        "what an open snapshot shows otherwise after a vacuum is not told",
        "drills/vacuuming.py",
        "                if before.get(row) != now.get(row):\n",
        "                if False:\n",
        "unit/drills/test_vacuuming.py::test_what_an_open_snapshot_shows_otherwise_is_told",
    ),
    Mutation(
        "what vacuums leave more and more of is not told",
        "drills/vacuuming.py",
        "            if last > GROWTH_MAX * first:\n",
        "            if False:\n",
        "unit/drills/test_vacuuming.py::test_what_grows_for_good_is_told_and_what_goes_up_and_down_is_not",
    ),
    Mutation(
        "a commit is not missed in the commit table that no vacuum has dropped",
        "drills/verdict.py",
        " or each.id < record.outcomes_from:",
        " or each.id <= record.outcomes_from:",
        "unit/drills/test_drill_verdict.py::test_of_what_a_vacuum_has_dropped_the_commit_table_need_not_know",
    ),
    Mutation(
        "a late line of an oracle that is gone makes another one primary",
        "drills/site.py",
        "                if start != self._starts:\n                    return\n",
        "",
        "unit/drills/test_drill_site.py::test_a_late_line_of_an_earlier_oracle_is_a_tenure_and_nothing_else",
    ),
    Mutation(
        "a container that was cut off comes back without the name that others know it by",
        "drills/compose/containers.py",
        '"--alias", self.name, ',
        "",
        _FAULTS + "test_cut_from_all_takes_every_network_and_brings_each_back",
    ),
    Mutation(
        "a primary that is cut off from all keeps its clients",
        "drills/compose/faults.py",
        '"cut-all", NETWORKS',
        '"cut-all", NETWORKS[:2]',
        _FAULTS + "test_cut_from_all_takes_every_network_and_brings_each_back",
    ),
    Mutation(
        "outages are measured by the clocks of two machines",
        "drills/compose/engine.py",
        "    if kernel != os.uname().release:\n",
        "    if False:\n",
        "unit/drills/test_compose_engine.py::test_an_engine_on_another_machine_is_refused",
    ),
]
