"""Broken rules of configuration, metrics and log: what an operator is told."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_CHECKING = "unit/configuration/test_configuration_checking.py::"
_CHECK = "unit/client_checkup/test_check.py::"
_METERING = "unit/tso/test_metering.py::"

OBSERVING_RULES = [
    Mutation(
        "a gateway that leads to another HBase is called fine",
        "client/checkup/looking.py",
        "if self._data is not None and (otherwise",
        "if False and (otherwise",
        _CHECK + "test_a_gateway_of_another_cluster_is_told",
    ),
    Mutation(
        "znodes that anybody may change are called fine",
        "client/checkup/looking.py",
        "        if grants == [Holder.ANYBODY]:",
        "        if False:",
        _CHECK + "test_znodes_that_anybody_may_change_are_a_warning",
    ),
    Mutation(
        "to look at a plain table makes it one of ours",
        "client/checkup/looking.py",
        "            if not manager.catalog.has_entry(table):",
        "            if False:",
        _CHECK + "test_tables_that_are_none_of_ours_or_nobodys_are_told",
    ),
    Mutation(
        "an oracle is waited for where it is known that there is none",
        "client/checkup/looking.py",
        "        if self._has_oracle:\n",
        "        if True:\n",
        _CHECK + "test_where_no_oracle_was_ever_started_it_is_said",
    ),
    Mutation(
        "what was not tried counts as well",
        "client/checkup/findings.py",
        "each.state in (State.FINE, State.WARNING)",
        "each.state is not State.FAILED",
        _CHECK + "test_what_was_not_tried_is_not_well",
    ),
    Mutation(
        "the environment goes before flags",
        "tso/options.py",
        "*from_environment, *of_flags(ORACLE, flags), *from_limits, *from_rest_limits]",
        "*of_flags(ORACLE, flags), *from_limits, *from_rest_limits, *from_environment]",
        "unit/configuration/test_configuration_commands.py::"
        "test_serve_takes_a_file_the_environment_and_flags_in_that_order",
    ),
    Mutation(
        "only the first mistake of a source is told",
        "configuration/checking.py",
        "for problem in error.errors(include_url=False):",
        "for problem in error.errors(include_url=False)[:1]:",
        _CHECKING + "test_every_mistake_is_told_at_once",
    ),
    Mutation(
        "a secret is shown",
        "configuration/setting.py",
        "if self.secret and value != self.default:",
        "if False:",
        _CHECKING + "test_a_secret_is_shown_nowhere",
    ),
    Mutation(
        "a mistake in a secret repeats it",
        "configuration/checking.py",
        'given = "what was given" if setting.secret else repr(problem["input"])',
        'given = repr(problem["input"])',
        _CHECKING + "test_a_secret_is_shown_nowhere",
    ),
    Mutation(
        "the counts of an epoch are lost with it",
        "tso/persistence/pipeline.py",
        "self._metering.commits += self.oracle.counts.commits",
        "self._metering.commits += 0",
        _METERING + "test_counts_go_on_over_the_epochs_of_a_process",
    ),
    Mutation(
        "a batch of commits is timed as one",
        "tso/metering.py",
        "self._commit.add(self.clock_s() - since_s, transactions)",
        "self._commit.add(self.clock_s() - since_s)",
        _METERING + "test_a_batch_is_one_observation_of_its_size",
    ),
    Mutation(
        "a refused commit counts as committed",
        "tso/persistence/owed.py",
        "if self.decided.start_timestamps.size == transactions:",
        "if transactions:",
        _METERING + "test_a_batch_is_one_observation_of_its_size",
    ),
    Mutation(
        "a value on a bin's bound is counted above it",
        "tso/metering.py",
        "self._bins[bisect_left(self._bounds, value)] += times",
        "self._bins[min(bisect_left(self._bounds, value) + (value in self._bounds), len(self._bounds))] += times",
        _METERING + "test_a_bin_holds_what_is_up_to_its_bound_and_one_value_may_stand_for_many",
    ),
    Mutation(
        "what a client sends may look like a line of the log",
        "logs/lines.py",
        'return "\\\\n".join(super().format(record).splitlines())',
        "return super().format(record)",
        "unit/tso/test_logs.py::test_a_record_is_one_line_whatever_is_in_it",
    ),
    Mutation(
        "a sample may be no number",
        "wire/metrics.py",
        "if not np.isfinite(self.values).all():",
        "if False:",
        "unit/wire/test_messages.py::test_a_wrong_message_cannot_be_built",
    ),
    Mutation(
        "a line that is logged again and again fills the disk",
        "logs/repetition.py",
        "        return number <= self.ALIKE_MAX\n",
        "        return True\n",
        "unit/test_repetition.py",
    ),
]
