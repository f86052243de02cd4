"""Broken rules of the pipeline: when a commit is decided, written and answered, and who is told what when it ends."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_GROUP = "unit/tso/test_group_commit.py::"

PIPELINE_RULES: list[Mutation] = [
    Mutation(
        "the lease is not checked after the write",
        "tso/pipeline.py",
        "        elif self._still_held():",
        "        elif not self.ended:",
        "unit/tso/test_pipeline_lease.py::test_a_lease_lost_during_the_write_stops_the_answer",
    ),
    Mutation(
        "the lease is not checked before timestamps are handed out",
        "tso/pipeline.py",
        "if not self._arrived or not self._still_held():",
        "if not self._arrived:",
        "unit/tso/test_pipeline_lease.py::test_without_the_lease_nothing_is_handed_out_and_what_is_not_decided_is_told",
    ),
    Mutation(
        "the lease is not checked after a look-up",
        "tso/pipeline.py",
        "        if self._still_held():\n            self._is_whole_after(partial(self._tell_outcomes",
        "        if not self.ended:\n            self._is_whole_after(partial(self._tell_outcomes",
        "unit/tso/test_pipeline_lease.py::test_a_lease_lost_during_a_look_up_stops_the_answer",
    ),
    Mutation(
        "a defect after a write is only logged",
        "tso/pipeline.py",
        "            self._is_whole_after(partial(self._make_known, batch, voided))",
        "            self._make_known(batch, voided)",
        "unit/tso/test_pipeline_lease.py::test_a_defect_after_a_write_deposes_and_leaves_nobody_waiting",
    ),
    Mutation(
        "whoever is being told as a defect shows waits for ever",
        "tso/pipeline.py",
        "            match self._owed[number]:",
        "            self._owed[number], owed = OwedDecision((), (), self._owed[number], 0), self._owed[number]\n"
        "            match owed:",
        "unit/tso/test_pipeline_lease.py::test_a_defect_after_a_write_deposes_and_leaves_nobody_waiting",
    ),
    Mutation(
        "a defect after a look-up is only logged",
        "tso/pipeline.py",
        "            self._is_whole_after(partial(self._tell_outcomes, arrival, recalled, found))",
        "            self._tell_outcomes(arrival, recalled, found)",
        "unit/tso/test_pipeline_lease.py::test_a_defect_after_a_look_up_deposes_and_leaves_nobody_waiting",
    ),
    Mutation(
        "the pipeline answers although its writer failed",
        "tso/writers.py",
        "            voided = error\n",
        "            voided = frozenset()\n",
        "unit/tso/test_pipeline_lease.py::test_a_write_that_stays_failed_deposes_and_is_never_called_committed",
    ),
    Mutation(
        "a large write set keeps all others waiting until it is taken whole",
        "tso/pipeline.py",
        "                case WriteSetPart():\n                    parts.append(arrival)\n",
        "                case WriteSetPart() as part:\n"
        "                    self._large(arrival, partial(self.oracle.take_part, part, now))\n",
        "unit/tso/test_pipeline_large.py",
    ),
    Mutation(
        "parts that wait their turn are forgotten",
        "tso/pipeline.py",
        "            self._arrived[:0] = parts[1:]\n",
        "",
        "unit/tso/test_pipeline_large.py",
    ),
    Mutation(
        "what waits for a writer is not decided when one is idle",
        "tso/pipeline.py",
        "        if self._undecided and not self.ended:\n",
        "        if False:\n",
        f"{_GROUP}test_what_no_writer_would_take_is_decided_together_once_one_is_idle",
    ),
    Mutation(
        "who is refused when a writer is idle waits for the next request",
        "tso/pipeline.py",
        "            self._tell_released()  # who is refused waits for no write\n",
        "",
        f"{_GROUP}test_who_is_refused_when_a_writer_is_idle_is_told_at_once",
    ),
    Mutation(
        "much is held back, and decided over when a writer could write it",
        "tso/pipeline.py",
        "if self._undecided_bytes > UNDECIDED_BYTES_MAX or self._writers",
        "if self._writers",
        f"{_GROUP}test_much_is_decided_while_the_writers_are_busy",
    ),
    Mutation(
        "a question overtakes the commits that were asked for before it",
        "tso/pipeline.py",
        "                    self._decide_all(now)  # what came before",
        "                    # what came before",
        f"{_GROUP}test_a_question_is_answered_by_what_was_asked_before_it",
    ),
    Mutation(
        "whoever is not decided when it ends waits for ever",
        "tso/pipeline.py",
        "        arrived = [*(arrival for arrival, _ in self._take_undecided()), *self._arrived]",
        "        arrived = self._arrived",
        f"{_GROUP}test_what_is_not_decided_when_it_ends_is_told_so",
    ),
    Mutation(
        "who may have been decided is told that nothing was done",
        "tso/pipeline.py",
        "            for arrival, _ in self._take_undecided():\n                arrival.requester.drop()\n",
        "",
        f"{_GROUP}test_whoever_a_defect_left_half_decided_is_dropped",
    ),
    Mutation(
        "who is being decided is not known any more",
        "tso/pipeline.py",
        "            self._commit_all(self._undecided, now)\n",
        "            self._commit_all(self._take_undecided(), now)\n",
        f"{_GROUP}test_whoever_a_defect_left_half_decided_is_dropped",
    ),
    Mutation(
        "one begin that cannot be spoils all of its wake-up",
        "tso/pipeline.py",
        "                for begin in begins:\n                    self._begin_all([begin], now)\n",
        "                for arrival, _ in begins:\n                    self._refuse(arrival, Later(1))\n",
        f"{_GROUP}test_a_begin_that_cannot_be_spoils_no_other_of_the_same_wake_up",
    ),
    Mutation(
        "a writer begins for a few commits while many are being written",
        "tso/writers.py",
        "self._idle > 0 and self._waiting + self._undecided() >= least",
        "self._idle > 0",
        f"{_GROUP}test_a_second_writer_begins_when_as_much_waits_as_is_under_way",
    ),
    Mutation(
        "a whole write waits while a larger one is under way",
        "tso/writers.py",
        "min(max(self._under_way, self._least), self._commits_max)",
        "max(self._under_way, self._least)",
        f"{_GROUP}test_a_whole_write_waits_for_no_larger_one",
    ),
    Mutation(
        "a write begins for the first who comes again",
        "tso/writers.py",
        "            self._least = least\n",
        "",
        f"{_GROUP}test_after_a_write_the_next_one_waits_for_half_of_those_who_go_round",
    ),
    Mutation(
        "those who do not come again are waited for as long as a slow write took",
        "tso/writers.py",
        "min(took_s, GATHER_MS_MAX / 1000)",
        "took_s",
        f"{_GROUP}test_who_does_not_come_again_is_waited_for_shortly",
    ),
    Mutation(
        "those who do not come again are waited for longer than the write took",
        "tso/writers.py",
        "min(took_s, GATHER_MS_MAX / 1000)",
        "GATHER_MS_MAX / 1000",
        f"{_GROUP}test_who_does_not_come_again_is_waited_for_shortly",
    ),
    Mutation(
        "empty requests are held back without a bound",
        "tso/pipeline.py",
        "HEADER_BYTES + len(frame.payload)",
        "len(frame.payload)",
        f"{_GROUP}test_what_is_malformed_is_held_back_no_more_than_anything_else",
    ),
    Mutation(
        "what is decided and waits for a writer counts for nothing",
        "tso/writers.py",
        "            self._waiting += decided.start_timestamps.size\n",
        "",
        f"{_GROUP}test_a_decision_that_waits_for_a_writer_counts_with_what_comes_later",
    ),
    Mutation(
        "begins of one wake-up get the same timestamps",
        "wire/gathering.py",
        "        first += count\n    return frames",
        "    return frames",
        f"{_GROUP}test_begins_of_a_wake_up_are_one_row_of_timestamps_at_one_snapshot",
    ),
]
