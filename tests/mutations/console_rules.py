"""Broken rules of the console and of its history: serving comes first, and a hand-over is an operator's."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_NOTES = "unit/tso/test_tenure_notes.py::"
_TENURES = "unit/lease/test_past_tenures.py::"
_CONSOLE = "unit/rest/test_rest_console.py::"
_PAGE = "unit/rest/test_console_page.py::"

CONSOLE_RULES = [
    Mutation(
        "a primary waits until its tenure is in the history",
        "lease/historian.py",
        'threading.Thread(target=self._add_patiently, args=(tenure,), name="history", daemon=True).start()',
        "self._add_patiently(tenure)",
        _NOTES + "test_serving_does_not_wait_for_the_history",
    ),
    Mutation(
        "a history that cannot be written is tried for longer than was said",
        "lease/historian.py",
        "for tries in range(TRIES_MAX):",
        "for tries in range(10 * TRIES_MAX):",
        "contract/test_historian.py::test_the_tries_are_bounded",
    ),
    Mutation(
        "a history of a newer release is overwritten",
        "lease/history.py",
        '    TENURES.require_known(fields["format"])\n',
        "",
        _TENURES + "test_what_is_not_understood_is_refused_with_what_to_do",
    ),
    Mutation(
        "the history grows without end",
        "lease/history.py",
        "tuple(ordered[-TENURES_MAX:])",
        "tuple(ordered)",
        _TENURES + "test_the_oldest_go_first_beyond_the_limit",
    ),
    Mutation(
        "a tenure whose write had an ambiguous end is noted twice",
        "lease/history.py",
        "if any(tenure.epoch == known.epoch for known in self.tenures):",
        "if any(tenure is known for known in self.tenures):",
        _TENURES + "test_a_tenure_is_there_once_and_in_its_place_whoever_wrote_first",
    ),
    Mutation(
        "an outage whose beginning nobody saw is told as measured",
        "lease/candidate.py",
        "self._saw_it_happen = before is not None and nonce is not None and before.nonce == nonce",
        "self._saw_it_happen = nonce is not None",
        _TENURES + "test_who_came_after_the_last_renewal_says_at_least",
    ),
    Mutation(
        "a lease of one's own that ran out is told as handed over, since it was released late",
        "lease/tenure.py",
        "self._ran_out = now_ms >= self._valid_until_ms",
        "self._ran_out = False",
        _TENURES + "test_a_lease_of_ones_own_that_ran_out_before_it_was_released_ran_out",
    ),
    Mutation(
        "a lease that a standby looks at once more is taken for renewed",
        "tso/process.py",
        "self._server.own.saw_lease(primary.lease_ms, seen_ms)",
        "self._server.own.saw_lease(primary.lease_ms, monotonic_ms())",
        _NOTES + "test_the_outage_counts_from_the_last_renewal_however_often_a_standby_looks",
    ),
    Mutation(
        "a reader hands over",
        "rest/roles.py",
        '"hand_over": "operate"',
        '"hand_over": "read"',
        _CONSOLE + "test_only_operators_hand_over",
    ),
    Mutation(
        "every open page asks all oracles",
        "rest/shared.py",
        "        if self._asking is None:\n",
        "        if True:\n",
        _CONSOLE + "test_many_pages_ask_the_oracles_once",
    ),
    Mutation(
        "a primary that has yet to notice that it is deposed is taken for the one who serves",
        "fleet/told.py",
        "return serving[max(serving)]",
        "return serving[min(serving)]",
        "unit/fleet/test_fleet_oracles.py::test_of_two_who_say_that_they_serve_the_newer_epoch_is_asked",
    ),
    Mutation(
        "a hand-over of which it is not known whether it was done is told as not done",
        "rest/console/handover.js",
        'return error.problem.code === "cannot-hand-over" ||',
        "return true ||",
        _PAGE + "test_a_hand_over_of_unknown_end_is_told_as_that_and_never_asked_for_twice",
    ),
    Mutation(
        "a page of which a part did not come stays as it is",
        "rest/console/index.html",
        "  if (!givesUp) again();\n",
        "",
        _PAGE + "test_a_page_of_which_a_part_did_not_come_is_loaded_again",
    ),
    Mutation(
        "a page of which a part never comes is loaded for ever",
        "rest/console/index.html",
        "const givesUp = loads >= LOADS_MAX;",
        "const givesUp = false;",
        _PAGE + "test_a_page_of_which_a_part_never_comes_says_so_and_is_loaded_a_few_times_only",
    ),
    Mutation(
        "the page may ask other servers",
        "rest/console_routes.py",
        "connect-src 'self'; ",
        "connect-src *; ",
        _CONSOLE + "test_the_page_may_load_only_its_own_files_and_stand_in_no_frame",
    ),
]
