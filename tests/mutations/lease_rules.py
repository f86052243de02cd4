"""Broken rules of the lease and the epoch: who holds, for how long, and which timestamps are whose."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_ZOOKEEPER_TLS = "unit/lease/test_zookeeper_tls.py::"
_ZOOKEEPER_KERBEROS = "unit/lease/test_zookeeper_kerberos.py::"

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
        "claim.level, claim.sent_ms, self._membership.refresh",
        "claim.level, self._registry.monotonic_ms(), self._membership.refresh",
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
        "takeover_wait_ms(dataclasses.replace(lease.record, lease_ms=1000), self._sighting, now_ms)",
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
        "a lease that was removed by hand is waited for by the standby's own measure",
        "lease/candidate.py",
        "max(self._longest_lease_ms, lease.record.lease_ms)",
        "self._longest_lease_ms",
        "unit/lease/test_candidate.py::test_a_longer_lease_that_was_removed_by_hand_is_waited_out_by_its_own_length",
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
        "unit/lease/test_tenure.py::test_a_holder_whose_record_now_names_another_loses_the_lease",
    ),
    Mutation(
        "the nonce is not compared after a renewal that failed",
        "lease/tenure.py",
        "if lease is None or not self._is_ours(lease.record) or epoch is None",
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
        "the lease is overwritten, whatever stands there and whoever's tenure goes on",
        "lease/registry.py",
        "        return self.coordinator.commit(operations, ",
        "        operations = [\n"
        "            SetData(each.path, each.data, None) if isinstance(each, SetData)\n"
        "            and each.path == self.paths.lease else each\n"
        "            for each in operations if isinstance(each, SetData | Create) or 'tenures/' not in each.path\n"
        "        ]\n"
        "        return self.coordinator.commit(operations, ",
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
        "operations = self._put_lease(self._lease.record)\n",
        "operations = self._put_lease(self._lease.record) * (epoch is self._epoch)\n",
        "unit/lease/test_tenure.py::test_an_ambiguous_renewal_is_settled",
    ),
    Mutation(
        "the holder still holds while it releases",
        "lease/tenure.py",
        "        self._end()\n        with self._writing:",
        "        with self._writing:",
        "unit/lease/test_tenure.py::test_release_stops_holding_before_it_writes",
    ),
    Mutation(
        "an epoch without a record begins at the present time",
        "lease/rules.py",
        "epoch = max(floor, now)",
        "epoch = now",
        "unit/lease/test_lost_records.py unit/client/test_lost_coordinator.py",
    ),
    Mutation(
        "an epoch that is missing beside its lease is founded anew though nobody knows how far timestamps went",
        "lease/candidate.py",
        "if lease is not None and epoch is None and floor is None:",
        "if lease is not None and epoch is None and floor is not None:",
        "unit/lease/test_candidate.py::test_a_lease_without_its_epoch_is_refused_where_the_data_do_not_know_more",
    ),
    Mutation(
        "where records were lost nobody is waited for",
        "lease/candidate.py",
        "standby = self._stand_by_after_loss(lost)",
        "pass",
        "unit/lease/test_lost_records.py::test_who_held_may_not_have_noticed_and_is_waited_for "
        "unit/lease/test_lost_records.py::test_an_epoch_that_was_removed_is_waited_for_though_the_lease_was_released "
        "unit/lease/test_lease_machine.py",
    ),
    Mutation(
        "where records were lost the founder's own lease is waited for, not the holder's",
        "lease/candidate.py",
        "lease_ms = max(self._longest_lease_ms, floor.lease_ms)",
        "lease_ms = self._longest_lease_ms",
        "unit/lease/test_lost_records.py"
        "::test_a_longer_lease_that_the_founder_never_saw_is_waited_for_by_its_own_length",
    ),
    Mutation(
        "the ceiling passes the floor",
        "lease/tenure.py",
        "ceiling = min(wanted or 0, floor.known)",
        "ceiling = wanted or 0",
        "unit/lease/test_lost_records.py::test_the_ceiling_stops_at_the_floor_while_that_cannot_be_raised",
    ),
    Mutation(
        "a takeover asks for a ceiling before the floor is above it",
        "lease/candidate.py",
        "        self._registry.floor.require(record.ceiling)\n",
        "",
        "unit/lease/test_lost_records.py::test_a_new_installation_is_not_waited_for",
    ),
    Mutation(
        "an older copy of the epoch record is believed",
        "lease/rules.py",
        "return epoch is None or floor - epoch.ceiling > span",
        "return epoch is None",
        "unit/lease/test_lost_records.py::test_an_older_copy_is_noticed_waited_for_and_not_believed",
    ),
    Mutation(
        "each takeover in vain after a loss puts the floor further ahead of the clock",
        "lease/rules.py",
        "max(now + ahead, epoch + 1)",
        "_ceiling_above(now, epoch, ahead)",
        "unit/lease/test_lost_records.py::test_takeovers_in_vain_after_a_loss_leave_the_floor_where_it_was",
    ),
    Mutation(
        "data without a floor are taken for none",
        "lease/floor.py",
        "elif founding and self._floor.has_data():",
        "elif founding and not self._floor:",
        "unit/lease/test_lost_records.py::test_data_from_before_there_were_floors_are_waited_for",
    ),
    Mutation(
        "a lease is judged by what was seen in another session",
        "lease/candidate.py",
        "return before is not None and before == self._session_id",
        "return True",
        "unit/lease/test_lost_records.py::test_a_lease_that_looks_the_same_in_another_session_is_waited_for_anew",
    ),
    Mutation(
        "a holder goes on by an older copy of its lease",
        "lease/tenure.py",
        "if lease.version < self._lease.version:",
        "if lease.version < 0:",
        "unit/lease/test_lost_records.py::test_a_holder_whose_own_older_lease_came_back_holds_no_longer",
    ),
    Mutation(
        "a lease is given back by its version alone",
        "lease/tenure.py",
        "self._put_lease(released))",
        "self._put_lease(released)[1:])",
        "unit/lease/test_lost_records.py::test_a_release_does_not_reach_the_lease_of_another_who_served_since",
    ),
    Mutation(
        "a lease is renewed by its version alone",
        "lease/tenure.py",
        "operations = self._put_lease(self._lease.record)",
        "operations = self._put_lease(self._lease.record)[1:]",
        "unit/lease/test_loss_races.py::test_what_a_tenure_says_after_a_loss_does_not_reach_the_lease_of_another",
    ),
    Mutation(
        "a takeover does not end the tenure before",
        "lease/registry.py",
        "*(Delete(self.paths.tenure(other)) for other in begun), ",
        "",
        "unit/lease/test_loss_races.py::test_a_takeover_after_a_loss_does_not_reach_the_lease_of_another "
        "unit/lease/test_lost_records.py",
    ),
    Mutation(
        "a takeover ends tenures that began after it looked at the lease",
        "lease/candidate.py",
        "if self._sighting is not seen:",
        "if False:",
        "unit/lease/test_loss_races.py::test_a_takeover_after_a_loss_does_not_reach_the_lease_of_another",
    ),
    Mutation(
        "a tenure whose node is gone waits for its end",
        "lease/tenure.py",
        "if not self._registry.goes_on(self._lease.record.nonce):",
        "if False:",
        "unit/lease/test_lost_records.py::test_a_tenure_whose_node_was_removed_ends_and_the_next_begins_at_once",
    ),
    Mutation(
        "a client that no server takes any more is kept",
        "lease/zookeeper.py",
        "return now_s > link.lost_s + SESSIONS_WITHOUT_CONNECTION_MAX * self._session_timeout_ms / 1000",
        "return False",
        "unit/lease/test_zookeeper_client.py"
        "::test_a_zookeeper_that_lost_its_data_is_connected_to_by_a_client_that_has_seen_nothing",
    ),
    Mutation(
        "a read takes more trips to ZooKeeper than a write, and a lease is kept that nobody could take over",
        "lease/zookeeper.py",
        "            caught_up = self._client.sync_async(path) if synced else None\n",
        "            caught_up = self._client.sync_async(path) if synced else None\n"
        "            _ = caught_up and deadline.answer(caught_up)\n",
        "unit/lease/test_zookeeper_client.py::test_a_read_that_has_to_be_new_takes_one_trip_to_the_server_and_back",
    ),
    Mutation(
        "several clients are stopped at once",
        "lease/zookeeper.py",
        "(self._leaving is not None and self._leaving[1].is_alive())",
        "False",
        "unit/lease/test_zookeeper_client.py::test_one_client_at_a_time_is_being_stopped",
    ),
    Mutation(
        "a client that is being stopped speaks for its successor",
        "lease/zookeeper.py",
        "        client.add_listener(link.told)",
        "        client.add_listener(lambda state: self._link.told(state))",
        "unit/lease/test_zookeeper_client.py::test_what_the_old_client_says_is_not_said_of_the_new_one",
    ),
    Mutation(
        "a ZooKeeper that speaks TLS is spoken to in clear text",
        "lease/tls_handler.py",
        "            return context.wrap_socket(plain, server_hostname=self._files.server_name or hostname)\n",
        "            return plain\n",
        _ZOOKEEPER_TLS + "test_a_session_goes_over_tls_and_comes_back",
    ),
    Mutation(
        "a session over TLS has kazoo's own handler, which looks at no name",
        "lease/zookeeper.py",
        '{"use_ssl": True, "handler": TlsHandler(self._tls)}',
        '{"use_ssl": True, "ca": self._tls.authority_file, "verify_certs": True}',
        _ZOOKEEPER_TLS + "test_a_certificate_has_to_name_the_host_or_the_name_that_is_set",
    ),
    Mutation(
        "of ZooKeeper's hosts some may be spoken to in clear text",
        "lease/ensemble.py",
        "    if len({before for before, _ in found}) > 1:",
        "    if False:",
        _ZOOKEEPER_TLS + "test_an_ensemble_speaks_tls_or_does_not",
    ),
    Mutation(
        "nobody is told why ZooKeeper is not reached",
        "lease/zookeeper.py",
        "            self._link.warned = str(msg) % args\n",
        "            pass\n",
        _ZOOKEEPER_TLS + "test_why_nobody_is_reached_is_told_without_tls_too",
    ),
    Mutation(
        "a session counts as known as soon as kazoo calls it connected",
        "lease/zookeeper.py",
        "        if self._ensemble.kerberos:  # kazoo calls",
        "        if False:  # kazoo calls",
        _ZOOKEEPER_KERBEROS + "test_who_is_refused_is_told_so_and_tries_again",
    ),
    Mutation(
        "who was refused before it asked anything waits to be connected",
        "lease/zookeeper.py",
        "                # Asked first:",
        "                self._await_connection(deadline)\n                # Asked first:",
        _ZOOKEEPER_KERBEROS + "test_a_refusal_that_comes_before_anything_is_asked_is_told_at_once",
    ),
    Mutation(
        "who has no tickets for a moment is refused for good",
        "lease/zookeeper.py",
        "        if isinstance(error, _NOT_LET_IN) and self._by_kerberos:",
        "        if False:",
        _ZOOKEEPER_KERBEROS + "test_who_is_refused_is_told_so_and_tries_again",
    ),
    Mutation(
        "why Kerberos came to nothing is told to nobody",
        "lease/kerberos.py",
        "            self._tell(str(error))\n",
        "",
        _ZOOKEEPER_KERBEROS
        + "test_a_zookeeper_that_shows_no_proof_is_sent_nothing_more "
        + _ZOOKEEPER_KERBEROS
        + "test_a_kdc_that_does_not_answer_is_waited_for_for_a_limited_time",
    ),
    Mutation(
        "frames are to be sealed that ZooKeeper's protocol has no seals for",
        "lease/kerberos.py",
        "Layer.NONE, self._limit_ms",
        "Layer.CONFIDENTIALITY, self._limit_ms",
        _ZOOKEEPER_KERBEROS + "test_a_layer_that_zookeepers_protocol_has_not_is_not_agreed_on",
    ),
    Mutation(
        "a ZooKeeper that has nothing to say to Kerberos counts as one that agrees",
        "lease/kerberos.py",
        '            raise ConnectionError(f"it has nothing to say to Kerberos',
        "            self.complete = True\n            return b''\n"
        '            raise ConnectionError(f"it has nothing to say to Kerberos',
        _ZOOKEEPER_KERBEROS + "test_a_zookeeper_that_asks_for_none_is_not_spoken_to",
    ),
    Mutation(
        "an answer of ZooKeeper that is decrypted already is waited for",
        "lease/tls_handler.py",
        "isinstance(each, ssl.SSLSocket) and each.pending()",
        "False",
        _ZOOKEEPER_TLS + "test_an_answer_that_came_with_the_one_before_is_not_waited_for",
    ),
]
