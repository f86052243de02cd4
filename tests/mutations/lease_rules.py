"""Broken rules of the lease and the epoch: who holds, for how long, and which timestamps are whose."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

LEASE_RULES = [
    Mutation(
        "validity is counted without the safety margin",
        "lease/rules.py",
        "return self.lease_ms - self.safety_margin_ms",
        "return self.lease_ms",
        "unit/lease/test_lease_rules.py::test_what_is_not_given_follows_from_the_lease "
        "unit/lease/test_lease_rules.py::test_the_holder_stops_before_a_standby_may_start",
    ),
    Mutation(
        "validity is counted from the answer to a renewal",
        "lease/tenure.py",
        "self._confirm(sent_ms, self._lease.version + 1, epoch)",
        "self._confirm(self._registry.monotonic_ms(), self._lease.version + 1, epoch)",
        "unit/lease/test_tenure.py::test_validity_counts_from_before_the_renewal_was_sent",
    ),
    Mutation(
        "validity is counted from the answer to a takeover",
        "lease/candidate.py",
        "Tenure(self._registry, claim.lease, claim.epoch, claim.sent_ms, self._membership.refresh)",
        "Tenure(self._registry, claim.lease, claim.epoch, self._registry.monotonic_ms(), self._membership.refresh)",
        "unit/lease/test_tenure.py::test_validity_counts_from_before_the_takeover_was_sent",
    ),
    Mutation(
        "a renewal that may have landed twice counts from the later write",
        "lease/tenure.py",
        "if self._unresolved_since_ms is None:",
        "if self._unresolved_since_ms != sent_ms:",
        "unit/lease/test_tenure.py::test_a_version_that_moved_by_our_own_late_write_is_not_a_loss",
    ),
    Mutation(
        "a tenure that said it had ended is revived by a late answer",
        "lease/tenure.py",
        "if self._registry.monotonic_ms() >= self._valid_until_ms:",
        "if self._registry.monotonic_ms() < 0:",
        "unit/lease/test_tenure.py::test_an_answer_after_the_deadline_does_not_revive",
    ),
    Mutation(
        "the wall clock decides over the lease",
        "lease/candidate.py",
        "            monotonic_ms=monotonic_ms,",
        "            monotonic_ms=wall_ms,",
        "unit/lease/test_candidate.py::test_wall_clock_steps_change_neither_validity_nor_the_wait",
    ),
    Mutation(
        "a standby waits half a lease",
        "lease/rules.py",
        "sighting.since_ms + lease_ms - now_ms",
        "sighting.since_ms + lease_ms / 2 - now_ms",
        "unit/lease/test_candidate.py::test_a_standby_takes_over_after_a_full_lease_and_not_before",
    ),
    Mutation(
        "a standby waits its own lease, not the holder's",
        "lease/candidate.py",
        "takeover_wait_ms(lease.record, self._sighting, now_ms)",
        "absence_wait_ms(epoch.record if epoch else None, self._sighting, settings, now_ms)",
        "unit/lease/test_candidate.py::test_the_holders_lease_counts_not_the_standbys",
    ),
    Mutation(
        "a standby counts from before it saw the write",
        "lease/candidate.py",
        "lease = self._registry.read_lease(self._changed)\n        now_ms = self._registry.monotonic_ms()",
        "now_ms = self._registry.monotonic_ms()\n        lease = self._registry.read_lease(self._changed)",
        "unit/lease/test_candidate.py::test_the_wait_counts_from_after_the_write_was_seen",
    ),
    Mutation(
        "a standby does not notice that the lease was renewed",
        "lease/rules.py",
        "(previous.version, previous.nonce) == (version, nonce)",
        "previous.nonce == nonce",
        "unit/lease/test_candidate.py::test_a_renewal_starts_the_standbys_wait_again",
    ),
    Mutation(
        "a lease that was removed by hand is free at once",
        "lease/rules.py",
        "    if epoch is None:\n        return 0.0",
        "    if True:\n        return 0.0",
        "unit/lease/test_candidate.py::test_a_lease_removed_by_hand_is_waited_out",
    ),
    Mutation(
        "a renewal whose answer was lost is taken for a success",
        "lease/tenure.py",
        "            if isinstance(result, Applied):\n                self._confirm",
        '            if type(result).__name__ != "Rejected":\n                self._confirm',
        "unit/lease/test_tenure.py::test_an_ambiguous_renewal_is_settled",
    ),
    Mutation(
        "a rejected renewal is taken for a success",
        "lease/tenure.py",
        "            if isinstance(result, Applied):\n                self._confirm",
        '            if type(result).__name__ != "Unknown":\n                self._confirm',
        "unit/lease/test_candidate.py::test_a_standby_takes_over_after_a_full_lease_and_not_before "
        "unit/lease/test_tenure.py::test_a_holder_whose_record_now_names_another_loses_the_lease",
    ),
    Mutation(
        "the nonce is not compared after a renewal that failed",
        "lease/tenure.py",
        "if lease is None or lease.record != self._lease.record or epoch is None",
        "if lease is None or epoch is None",
        "unit/lease/test_tenure.py::test_a_holder_whose_record_now_names_another_loses_the_lease",
    ),
    Mutation(
        "a takeover whose answer was lost is taken for a success",
        "lease/candidate.py",
        "now_stored = claim.lease if isinstance(result, Applied) else self._read_lease()",
        'now_stored = self._read_lease() if type(result).__name__ == "Rejected" else claim.lease',
        "unit/lease/test_candidate.py::test_an_ambiguous_takeover_is_settled",
    ),
    Mutation(
        "a takeover that was rejected is taken for a success",
        "lease/candidate.py",
        "now_stored = claim.lease if isinstance(result, Applied) else self._read_lease()",
        'now_stored = self._read_lease() if type(result).__name__ == "Unknown" else claim.lease',
        "unit/lease/test_candidate.py::test_two_first_starts_at_the_same_time_make_one_primary",
    ),
    Mutation(
        "the lease is overwritten without a compare",
        "lease/registry.py",
        "SetData(path, data, version)",
        'SetData(path, data, None if path.endswith("/lease") else version)',
        "unit/lease/test_tenure.py::test_a_holder_whose_record_now_names_another_loses_the_lease",
    ),
    Mutation(
        "the epoch is overwritten without a compare",
        "lease/registry.py",
        "SetData(path, data, version)",
        'SetData(path, data, None if path.endswith("/epoch") else version)',
        "unit/lease/test_tenure.py::test_a_holder_whose_epoch_was_meddled_with_loses_the_lease",
    ),
    Mutation(
        "a takeover leaves the epoch as it was",
        "lease/candidate.py",
        "                registry.put_epoch(claim.epoch.record, None if epoch is None else epoch.version),",
        "                *([registry.put_epoch(claim.epoch.record, None)] if epoch is None else []),",
        "unit/lease/test_candidate.py::test_an_ambiguous_takeover_is_settled",
    ),
    Mutation(
        "an epoch starts at the clock alone",
        "lease/rules.py",
        "epoch = max(1 if old is None else old.ceiling, now)",
        "epoch = max(1, now)",
        "unit/lease/test_lease_rules.py::test_epochs_are_disjoint_and_increase_whatever_the_clock_says",
    ),
    Mutation(
        "the ceiling is moved without asserting the lease",
        "lease/tenure.py",
        "        operations = [self._registry.put_lease(self._lease.record, self._lease.version)]",
        "        operations = (\n"
        "            [self._registry.put_lease(self._lease.record, self._lease.version)] if epoch is self._epoch else []\n"
        "        )",
        "unit/lease/test_tenure.py",
    ),
    Mutation(
        "the holder still holds while it releases",
        "lease/tenure.py",
        "        self._end()\n        with self._writing:",
        "        with self._writing:",
        "unit/lease/test_tenure.py::test_release_stops_holding_before_it_writes",
    ),
]
