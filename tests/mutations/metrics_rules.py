"""Broken rules of what a program and REST count: what came of it, once, and nothing that did not happen."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_PROGRAMS = "unit/client/metrics/test_client_metrics.py::"
_REST = "unit/rest/test_rest_metering.py::"

METRICS_RULES = [
    Mutation(
        "a commit that failed counts as one that committed",
        "client/metrics/meter.py",
        "            result = _result_of(error)\n",
        "",
        _PROGRAMS + "test_each_call_of_commit_counts_by_what_came_of_it",
    ),
    Mutation(
        "a commit of nothing counts as one that committed",
        "client/metrics/meter.py",
        "result = COMMITTED if writes else NOTHING_WRITTEN",
        "result = COMMITTED",
        _PROGRAMS + "test_each_call_of_commit_counts_by_what_came_of_it",
    ),
    Mutation(
        "a store that is down passes for somebody's abort",
        "client/metrics/meter.py",
        "if isinstance(reason, NoPrimary | StoreError):",
        "if False:",
        _PROGRAMS + "test_what_could_not_be_had_is_told_from_what_was_decided",
    ),
    Mutation(
        "a begin that failed is timed as one",
        "client/metrics/meter.py",
        "            self._begin_failures.inc()\n            raise\n",
        "            self._begin_failures.inc()\n            self._begin_seconds.observe(0.0)\n            raise\n",
        _PROGRAMS + "test_a_begin_that_fails_is_counted_as_one",
    ),
    Mutation(
        "a child goes on counting where its parent was",
        "client/metrics/meter.py",
        "        self._start(self._meters)\n        for meter in self._meters.values():\n"
        "            meter.count_by(self._instruments)\n",
        "",
        _PROGRAMS + "test_a_child_counts_from_zero_whatever_was_under_way_at_the_fork",
    ),
    Mutation(
        "managers that are gone keep others from being asked",
        "client/metrics/meter.py",
        "self._watched = (*(known for known in self._watched if known() is not None), weakref.ref(holder))",
        "self._watched = (weakref.ref(holder),)",
        _PROGRAMS + "test_managers_of_an_installation_count_together",
    ),
    Mutation(
        "each number is told with the moment at which it began",
        "client/metrics/instruments.py",
        'if not sample.name.endswith("_created")',
        "if True",
        _PROGRAMS + "test_all_that_there_is_to_count_is_there_from_the_beginning",
    ),
    Mutation(
        "the time of a hook counts as a step's",
        "client/transactions/commit.py",
        "step, self._start_timestamp)\n        self._since_s = time.monotonic()\n",
        "step, self._start_timestamp)\n",
        _PROGRAMS + "test_the_time_of_a_hook_is_not_that_of_a_step",
    ),
    Mutation(
        "a closed manager holds what it held",
        "client/transactions/heartbeat.py",
        "        if self._closed.is_set():\n            return 0, 0.0\n",
        "",
        _PROGRAMS + "test_a_manager_that_was_closed_has_nothing_in_use",
    ),
    Mutation(
        "what has ended, or nobody knows of, is in use",
        "client/transactions/heartbeat.py",
        "for living, since_s in self._watched.items() if living.is_open()}",
        "for living, since_s in self._watched.items()}",
        _PROGRAMS + "test_what_is_in_use_is_told_with_the_age_of_the_oldest",
    ),
    Mutation(
        "a first attempt counts as one that was run again",
        "client/transactions/reruns.py",
        "        runs_again()\n\n    return {\n",
        "        runs_again()\n\n    runs_again()\n    return {\n",
        _PROGRAMS + "test_what_is_run_again_is_counted_each_time",
    ),
    Mutation(
        "an overloaded oracle is not counted",
        "client/connection/dispatch.py",
        "            self._meter.overloaded()\n            self._why = OVERLOADED\n",
        "            self._why = OVERLOADED\n",
        "unit/client/connection/test_async_oracle.py::"
        "test_an_overloaded_oracle_is_asked_again_after_the_time_that_it_names",
    ),
    Mutation(
        "each path that there is not makes a series of its own",
        "rest/metering.py",
        "        return NO_ROUTE\n",
        '        return str(asked["path"])\n',
        _REST + "test_what_is_turned_away_counts_too_and_no_path_makes_a_name_of_its_own",
    ),
    Mutation(
        "what asks by another method counts as the operation",
        "rest/metering.py",
        ' or asked["method"] not in (route.methods or ())',
        "",
        _REST + "test_what_is_turned_away_counts_too_and_no_path_makes_a_name_of_its_own",
    ),
    Mutation(
        "a problem counts as a good answer",
        "rest/metering.py",
        'self.word = json.loads(self._body)["code"]',
        "pass",
        _REST + "test_requests_count_by_what_they_asked_for_and_what_they_were_told",
    ),
    Mutation(
        "who goes before the answer counts as answered",
        "rest/metering.py",
        "        self.word = GONE\n",
        "        self.word = OK\n",
        _REST + "test_a_client_that_goes_before_its_answer_is_counted_as_gone",
    ),
    Mutation(
        "a first fault is no increase",
        "rest/metering.py",
        "for answer in (OK, FAULT):",
        "for answer in (OK,):",
        _REST + "test_a_first_fault_of_any_operation_is_an_increase",
    ),
    Mutation(
        "transactions that are left are not counted",
        "rest/held_transactions.py",
        '        if ended.word == "expired":\n            self._expired()\n',
        "",
        _REST + "test_transactions_that_their_callers_leave_are_counted",
    ),
    Mutation(
        "the answer to a fault does not say that its connection ends",
        "rest/answering.py",
        '"the request met a fault of this server", headers=closes)',
        '"the request met a fault of this server")',
        _REST + "test_a_fault_counts_as_one",
    ),
]
