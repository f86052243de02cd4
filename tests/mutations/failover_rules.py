"""Broken rules of failover: what saves a transaction in flight, who may live on, and what of the past is settled."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_FAILOVER = "unit/client/test_failover.py::"

FAILOVER_RULES = [
    Mutation(
        "a transaction is revalidated without a fence of its own",
        "client/revalidation.py",
        "self._commit_table.resolve(handle.start_timestamp, begun.epoch)",
        "self._commit_table.outcome(handle.start_timestamp)",
        _FAILOVER + "test_a_late_write_of_the_old_primary_cannot_commit_what_was_told_to_be_aborted",
    ),
    Mutation(
        "a transaction that did commit before the failover is committed once more",
        "client/revalidation.py",
        "        if isinstance(outcome, Committed):\n            return outcome\n",
        "",
        _FAILOVER + "test_what_did_commit_before_the_failover_is_told_so_though_the_answer_was_lost",
    ),
    Mutation(
        "a commit of an older epoch's transaction is acknowledged without being read back",
        "tso/persist.py",
        "            void |= await self._aborted_meanwhile([start for start in looked_at if start not in void])\n",
        "",
        "unit/client/test_failover.py::test_a_late_abort_of_the_old_primary_is_found_before_the_commit_is_acknowledged",
    ),
    Mutation(
        "a commit that relies on its client is written over an earlier one",
        "tso/persist.py",
        "void = await self._ended_before(looked_at)",
        "void: dict[int, Reason] = {}",
        "unit/client/test_failover.py::test_who_commits_again_without_asking_is_sent_to_its_first_commit",
    ),
    Mutation(
        "a transaction whose commit was forgotten is taken for a new one",
        "tso/oracle.py",
        "relying = committed[snapshots < self.conflicts.low_watermark]",
        "relying = committed[committed < self.epoch]",
        "unit/tso/test_voided_commits.py::test_who_committed_here_and_was_forgotten_does_not_commit_again",
    ),
    Mutation(
        "a primary whose event loop hangs keeps its lease",
        "tso/process.py",
        "monotonic_ms() - self._ran_ms)",
        "0.0)",
        "unit/client/test_failover.py::test_a_primary_whose_event_loop_hangs_is_followed_by_another",
    ),
    Mutation(
        "two processes may end a shared transaction at once",
        "client/manifest.py",
        "                return stored.value == value\n",
        "                return True\n",
        "unit/client/test_bulk.py::test_of_two_that_end_a_shared_transaction_at_once_only_one_may_write_into_it",
    ),
    Mutation(
        "a start alone takes its epoch without looking whether it stands",
        "lease/solo.py",
        "            if self._registry.read() == record:",
        "            if True:",
        "unit/lease/test_solo.py",
    ),
    Mutation(
        "a process alone goes on after a second one was started",
        "lease/solo.py",
        "if stored is None or stored.nonce != self._record.nonce:",
        "if stored is None:",
        "unit/lease/test_solo.py",
    ),
    Mutation(
        "a revalidation looks for no conflicts",
        "client/revalidation.py",
        "                if newest > handle.snapshot_timestamp:",
        "                if False:",
        _FAILOVER + "test_its_own_conflict_is_found_on_either_side_of_the_failover",
    ),
    Mutation(
        "a revalidation misses the commits between snapshot and start",
        "client/revalidation.py",
        "newest > handle.snapshot_timestamp",
        "newest > handle.start_timestamp",
        _FAILOVER + "test_a_commit_between_snapshot_and_start_is_a_conflict_across_a_failover",
    ),
    Mutation(
        "a revalidation leaves other writers of the old epoch unfenced",
        "client/revalidation.py",
        "View(begun.snapshot, begun.epoch)",
        "View(begun.snapshot, 0)",
        _FAILOVER + "test_a_late_write_of_the_old_primary_cannot_commit_a_rival_that_was_passed_by",
    ),
    Mutation(
        "a revalidation takes the transaction's own versions for a rival's",
        "client/revalidation.py",
        'conflict_level == "row"',
        'conflict_level == "cell"',
        _FAILOVER + "test_the_conflict_level_of_the_table_holds_across_a_failover",
    ),
    Mutation(
        "a revalidation leaves out bulk writes",
        "client/commit.py",
        "        if self._jobs:\n            for piece",
        "        if not self._jobs:\n            for piece",
        _FAILOVER + "test_a_bulk_write_survives_a_failover_and_finds_its_conflicts",
    ),
    Mutation(
        "the oracle takes a validated snapshot of an older epoch",
        "tso/deciding.py",
        "        if snapshots[place] < remembered_from:",
        "        if snapshots[place] < remembered_from and snapshots[place] < start:",
        "unit/tso/test_oracle_answers.py::TestAborts::test_a_forgotten_abort_cannot_be_overtaken_by_a_commit_that_was_validated_before_its_fence",
    ),
    Mutation(
        "the oracle takes a snapshot that it never gave",
        "tso/oracle.py",
        " | (commits.validated > last)",
        "",
        "unit/tso/test_oracle.py::TestRevalidated",
    ),
    Mutation(
        "commits after a validation are not looked at",
        "tso/deciding.py",
        "free_up_to[place] = max(snapshots[place], validated[place])",
        "free_up_to[place] = 2**60 if validated[place] > 0 else snapshots[place]",
        "unit/tso/test_oracle.py::TestRevalidated",
    ),
    Mutation(
        "an abort is forgotten before its fence stands",
        "tso/oracle.py",
        "            self._aborts.update(recalled.unknown)\n",
        "            self._aborts.update(recalled.unknown)\n"
        "            while len(self._aborts) > self._limits.remembered_aborts_max:\n"
        "                self._aborts.discard(min(self._aborts))\n",
        "unit/tso/test_oracle_answers.py::TestAborts::test_an_abort_is_not_forgotten_before_its_fence_stands",
    ),
    Mutation(
        "a transaction that may have committed is told that it expired",
        "tso/deciding.py",
        "        if snapshots[place] < remembered_from:",
        "        if snapshots[place] < remembered_from and standing[place] == 0:",
        "unit/tso/test_oracle.py::TestLives",
    ),
    Mutation(
        "a transaction that was given up may commit",
        "tso/oracle.py",
        "            if not self.lives.is_alive(int(starts[place]), now.monotonic_ms):",
        "            if False:",
        "unit/tso/test_oracle.py::TestLives",
    ),
    Mutation(
        "a heartbeat brings back a transaction that was given up",
        "tso/lives.py",
        "        if not self.is_alive(start_timestamp, now_ms):\n            return False\n",
        "",
        "unit/tso/test_lives.py",
    ),
    Mutation(
        "the horizon passes a transaction that lives by heartbeats",
        "tso/lives.py",
        "oldest = min(young, min((beat.snapshot for beat in self._beating.values()), default=young))",
        "oldest = young",
        "unit/tso/test_lives.py",
    ),
    Mutation(
        "a heartbeat lifts what another one said that a transaction reads",
        "tso/lives.py",
        "oldest = snapshot if known is None else min(known.snapshot, snapshot)",
        "oldest = snapshot",
        "unit/tso/test_lives.py",
    ),
    Mutation(
        "a heartbeat may name any snapshot",
        "tso/oracle.py",
        "        for start, snapshot in zip(starts, snapshots, strict=True):\n"
        "            if snapshot >= start:\n"
        "                return self._above_its_start(start, snapshot)\n",
        "",
        "unit/tso/test_oracle.py::TestLives::test_a_heartbeat_names_a_snapshot_below_its_start",
    ),
    Mutation(
        "the horizon passes a transaction that is young",
        "tso/lives.py",
        "now_ms - self._samples[0].taken_ms >= self._life_ms",
        "now_ms - self._samples[0].taken_ms >= self._life_ms / 2",
        "unit/tso/test_lives.py",
    ),
    Mutation(
        "the epoch's record calls durable what is still on its way",
        "tso/oracle.py",
        "        self.range.next(1, now.wall_ms)\n        return self.snapshot",
        "        self.range.next(1, now.wall_ms)\n        return self.range.last",
        "unit/tso/test_pipeline.py::test_what_is_still_on_its_way_is_not_called_durable",
    ),
    Mutation(
        "a moment is read before it is settled",
        "client/past.py",
        "if moment > self._known.timestamp:",
        "if False:",
        _FAILOVER + "test_a_past_moment_is_read_with_every_oracle_down",
    ),
    Mutation(
        "a past moment is read without fencing older epochs",
        "client/manager.py",
        "SnapshotHandle(moment, self._past.settled(moment).epoch, self.settings)",
        "SnapshotHandle(moment, min(1, self._past.settled(moment).epoch), self.settings)",
        _FAILOVER + "test_a_moment_of_an_older_epoch_stays_as_it_was_when_read",
    ),
    Mutation(
        "a hand-over is told before the lease is free",
        "tso/roles.py",
        "                self._released.append(released)\n",
        "                self._released.append(lambda: None)\n                released()\n",
        "unit/tso/test_roles.py",
    ),
]
