"""Broken rules of operating: who may be drained, when a process ends or sleeps, what is put back, what is told."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_DRAINING = "unit/tso/test_draining.py"
_INQUIRY = "unit/client/test_transaction_inquiry.py"
_RESTORING = "unit/client_tables/test_table_restoring.py"

OPERATING_RULES = [
    Mutation(
        "a process that is drained ends with work under way",
        "tso/process.py",
        "            if not await pipeline.finish(limit_ms):",
        "            await pipeline.finish(limit_ms)\n            if False:",
        _DRAINING,
    ),
    Mutation(
        "an event loop keeps the core from others that want it",
        "tso/wakefulness.py",
        "if (self._clock_s() - before_s) * 1e6 > GAVE_WAY_US_MIN:",
        "if (self._clock_s() - before_s) > GAVE_WAY_US_MIN:",
        "unit/tso/test_wakefulness.py",
    ),
    Mutation(
        "an event loop looks for work although those who do it need the cores",
        "tso/wakefulness.py",
        "self._until_s = 0.0 if owed > OWED_MAX else self._clock_s() + self._awake_s_max",
        "self._until_s = self._clock_s() + self._awake_s_max",
        "unit/tso/test_wakefulness.py",
    ),
    Mutation(
        "a hand-over begins in the middle of a drain",
        "tso/process.py",
        "        if self._refused(connection, request_id):\n            return\n        self._handing_over",
        "        self._handing_over",
        _DRAINING,
    ),
    Mutation(
        "a pipeline is called finished while answers are owed",
        "tso/door.py",
        "        if not self.is_open and not owed:",
        "        if not self.is_open:",
        _DRAINING,
    ),
    Mutation(
        "a process that could not be drained serves nobody any more",
        "tso/process.py",
        "                pipeline.resume()\n",
        "",
        _DRAINING,
    ),
    Mutation(
        "a process that is being drained takes new work",
        "tso/door.py",
        "        self.is_open = False\n        return",
        "        return",
        _DRAINING,
    ),
    Mutation(
        "what has ended opens again",
        "tso/door.py",
        "        if not self.is_open and not self.has_ended:",
        "        if not self.is_open:",
        "unit/tso/test_door.py",
    ),
    Mutation(
        "a drained process ends before its lease is given back",
        "tso/process.py",
        "            epoch = pipeline.oracle.epoch\n            await self._release(keeper, epoch)\n",
        "            epoch = pipeline.oracle.epoch\n",
        _DRAINING,
    ),
    Mutation(
        "who is deposed, and has yet to notice it, is drained in place of the primary",
        "tso/draining.py",
        "        primary = primary_of(seen)\n",
        '        primary = next((one for one in seen if one.role in ("primary", "draining")), None)\n',
        _DRAINING + "::test_of_two_who_say_that_they_serve_the_newer_epoch_is_drained",
    ),
    Mutation(
        "the last one is drained unasked",
        "tso/draining.py",
        '    elif not any(other.role == "standby" for other in others):',
        "    elif False:",
        _DRAINING,
    ),
    Mutation(
        "a primary goes before its standby is warm",
        "tso/draining.py",
        "    if not any(_may_be_warm(standby.report) for standby in standbys):",
        "    if not standbys:",
        _DRAINING,
    ),
    Mutation(
        "a standby that does not tell how warm it is is waited for",
        "tso/draining.py",
        "(report.details is None or report.details.warm)",
        "(report.details is not None and report.details.warm)",
        f"{_DRAINING}::test_one_warm_standby_is_enough_and_one_that_does_not_tell_counts_as_warm",
    ),
    Mutation(
        "any number of transactions may be asked about in one go on the event loop",
        "tso/observing.py",
        "    if beyond is not None:\n        return beyond\n",
        "",
        "unit/tso/test_server.py::test_a_request_about_more_transactions_than_the_protocol_has_is_refused",
    ),
    Mutation(
        "any number of heartbeats is taken in one go on the event loop",
        "tso/pipeline.py",
        "        match beyond or self.oracle.heartbeat(request, now):",
        "        match self.oracle.heartbeat(request, now):",
        "unit/tso/test_server.py::test_a_request_about_more_transactions_than_the_protocol_has_is_refused",
    ),
    Mutation(
        "a client asks about more transactions at once than the oracle takes",
        "client/oracle.py",
        "start_timestamps[first : first + LIVES_TRANSACTIONS_MAX]",
        "start_timestamps",
        "unit/client/test_heartbeats.py::test_any_number_of_transactions_may_be_asked_about",
    ),
    Mutation(
        "a client sends more heartbeats at once than the oracle takes",
        "client/heartbeat.py",
        "starts[first : first + HEARTBEAT_TRANSACTIONS_MAX]",
        "starts[first : first + 2 * HEARTBEAT_TRANSACTIONS_MAX]",
        "unit/client/test_heartbeats.py::test_no_request_names_more_transactions_than_an_oracle_takes",
    ),
    Mutation(
        "to ask whether a transaction lives lets it live on",
        "tso/lives.py",
        "        return Life.HEARD_OF if self.is_alive(start_timestamp, now_ms) else Life.GIVEN_UP",
        "        return Life.HEARD_OF if self.beat(start_timestamp, 0, now_ms) else Life.GIVEN_UP",
        "unit/tso/test_lives.py",
    ),
    Mutation(
        "a commit that does not count is told as one",
        "client/transaction_findings.py",
        "    match found.record.outcome():\n        case Committed(commit_timestamp):",
        "    match found.record.outcome():\n"
        "        case _ if (commit_timestamp := found.record.commit_timestamp) is not None:",
        _INQUIRY,
    ),
    Mutation(
        "a transaction whose record may be gone is called undecided",
        "client/transaction_findings.py",
        "    if found.start_timestamp < found.vacuumed_below and not found.has_bulk:",
        "    if False:",
        _INQUIRY,
    ),
    Mutation(
        "a table that was made anew is emptied by a restore",
        "client/tables/restoring.py",
        "    if not done.rows and done.removed and not even_if_empty:",
        "    if False:",
        _RESTORING,
    ),
    Mutation(
        "a restore leaves the rows that came since",
        "client/tables/restoring.py",
        "            yield row, dict.fromkeys([*(now or ()), *markers], TOMBSTONE)",
        "            continue",
        _RESTORING,
    ),
    Mutation(
        "a restore leaves the columns that came since",
        "client/tables/restoring.py",
        "            gone = dict.fromkeys((now or {}).keys() - then.keys(), TOMBSTONE)",
        "            gone: dict[bytes, bytes] = {}",
        _RESTORING,
    ),
    Mutation(
        "a restore drops the rows of nothing but nulls",
        "client/tables/restoring.py",
        "            marker = {} if then else {markers[0]: ROW_MARKER_VALUE}",
        "            marker: dict[bytes, bytes] = {}",
        _RESTORING,
    ),
    Mutation(
        "a commit whose outcome is unknown ends like one that was refused",
        "tso/endings.py",
        '        "client.errors.OutcomeUnknown": Ending.UNKNOWN,',
        '        "client.errors.OutcomeUnknown": Ending.REFUSED,',
        "unit/documentation/test_endings.py",
    ),
    Mutation(
        "a flag that has to be given may be left out",
        "configuration/connection_flags.py",
        'given: dict[str, Any] = {"required": True} if default is None else {"default": default}',
        'given: dict[str, Any] = {"default": default}',
        "unit/configuration/test_connection_flags.py",
    ),
    Mutation(
        "of two who ask for the lease to be given back one is never told",
        "tso/roles.py",
        "self._released.append(released)",
        "self._released = [released]",
        "unit/tso/test_roles.py::"
        "test_a_keeper_that_steps_aside_tells_it_once_the_lease_is_free_and_leaves_it_to_others_for_a_while",
    ),
    Mutation(
        "what was owed when a tenure ended is taken for answered",
        "tso/door.py",
        "return self._idle.is_set() and not self.has_ended",
        "return self._idle.is_set()",
        "unit/tso/test_door.py",
    ),
]
