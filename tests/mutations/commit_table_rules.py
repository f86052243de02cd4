"""Broken rules of the commit table: what counts, fences, and who may cover whom."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

COMMIT_TABLE_RULES = [
    Mutation(
        "a commit below the largest fence counts",
        "commit_table/rule.py",
        "if self.commit_timestamp is not None and self.commit_timestamp >= self.largest_fence:",
        "if self.commit_timestamp is not None:",
        "contract/test_commit_table.py::test_a_fence_voids_a_late_commit_of_the_older_epoch",
    ),
    Mutation(
        "the smallest fence counts, not the largest",
        "commit_table/layout.py",
        "largest_fence=max(fences, default=0)",
        "largest_fence=min(fences, default=0)",
        "unit/commit_table/test_layout.py::test_a_record_is_read_back_and_neighbours_are_not_mistaken_for_it",
    ),
    Mutation(
        "a fence of one epoch is taken for an abort for good",
        "commit_table/rule.py",
        "if self.largest_fence >= FENCE_AT_INFINITY:",
        "if self.largest_fence > 0:",
        "contract/test_commit_table.py::test_a_fence_voids_a_late_commit_of_the_older_epoch",
    ),
    Mutation(
        "an older epoch's fence is taken for this epoch's",
        "commit_table/rule.py",
        "isinstance(self.outcome(), Undecided) and self.largest_fence < fence",
        "isinstance(self.outcome(), Undecided) and self.largest_fence == 0",
        "unit/commit_table/test_races.py::test_a_void_commit_does_not_stop_a_larger_fence",
    ),
    Mutation(
        "no fence is ever placed",
        "commit_table/rule.py",
        "return isinstance(self.outcome(), Undecided) and self.largest_fence < fence",
        "return False",
        "contract/test_commit_table.py::test_a_fence_voids_a_late_commit_of_the_older_epoch",
    ),
    Mutation(
        "a fence is placed without comparing the commit that was read",
        "commit_table/table.py",
        "check=layout.commit_column(start_timestamp),",
        "check=layout.fence_column(start_timestamp, fence),",
        "unit/commit_table/test_races.py::test_a_commit_between_the_read_and_the_fence_is_found",
    ),
    Mutation(
        "a rejected fence is taken for a placed one",
        "commit_table/table.py",
        "if isinstance(answer, Applied):",
        'if type(answer).__name__ != "Unknown":',
        "unit/commit_table/test_races.py::test_a_commit_between_the_read_and_the_fence_is_found",
    ),
    Mutation(
        "a fence whose answer was lost is taken for a placed one",
        "commit_table/table.py",
        "if isinstance(answer, Applied):",
        'if type(answer).__name__ != "Rejected":',
        "unit/commit_table/test_races.py::test_a_fence_whose_answer_is_lost_is_made_sure_of",
    ),
    Mutation(
        "a fence is tried a hundred times where no write is answered",
        "commit_table/table.py",
        "if unknown >= UNKNOWN_ANSWERS_MAX:",
        "if False:",
        "unit/commit_table/test_races.py::test_a_store_that_answers_reads_only_is_asked_three_times",
    ),
    Mutation(
        "the cell timestamp of a commit is not the epoch",
        "commit_table/recorder.py",
        "values[part], epoch)",
        "values[part], int(start_timestamps.max()))",
        "unit/commit_table/test_commit_recorder.py",
    ),
    Mutation(
        "an abort fences below infinity",
        "commit_table/table.py",
        "self.resolve(start_timestamp, FENCE_AT_INFINITY)",
        "self.resolve(start_timestamp, start_timestamp + 1)",
        "contract/test_commit_table.py::test_an_abort_is_for_good",
    ),
    Mutation(
        "of many transactions none is fenced",
        "commit_table/table.py",
        "start: self.resolve(start, fence) if record.needs_fence(fence) else record.outcome()",
        "start: record.outcome()",
        "unit/commit_table/test_races.py::test_many_are_fenced_as_one_is",
    ),
    Mutation(
        "an abort looks how far records were dropped before it looks for one, which is dropped in between",
        "commit_table/table.py",
        "        outcome = self.outcome(start_timestamp)\n"
        "        if isinstance(outcome, Undecided):\n"
        "            below = self.forgotten_below()  #",
        "        below = self.forgotten_below()\n"
        "        outcome = self.outcome(start_timestamp)\n"
        "        if isinstance(outcome, Undecided):\n"
        "            #",
        "unit/commit_table/test_races.py::test_a_commit_that_is_forgotten_while_somebody_aborts_it_is_not_fenced",
    ),
]
