"""Broken rules of streaming: a batch of Spark's lands once, with its record, or not at all."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_STREAMING = "unit/client_spark/test_streaming.py::"
_PROGRESS = "unit/client_spark/test_streaming_progress.py::"
_IDENTITY = "unit/client_spark/test_query_identity.py::"
_FAULTS = _STREAMING + "test_a_batch_lands_exactly_once_whichever_call_its_first_run_ended_at"

STREAMING_RULES = [
    Mutation(
        "a stream's batch commits without its record",
        "client/spark/streaming.py",
        "    transaction.put(records, row, {_BATCHES: advanced(progress, batch).to_json()})\n",
        "",
        _FAULTS,
    ),
    Mutation(
        "a stream's record is written after its batch, in a transaction of its own",
        "client/spark/streaming.py",
        "    transaction.put(records, row, {_BATCHES: advanced(progress, batch).to_json()})\n    try:\n"
        "        commit_or_settle(transaction)\n",
        "    try:\n        commit_or_settle(transaction)\n        with manager.transaction() as late:\n"
        "            late.put(records, row, {_BATCHES: advanced(progress, batch).to_json()})\n",
        _FAULTS,
    ),
    Mutation(
        "a function of foreachBatch commits without the record of its batch",
        "client/spark/streaming.py",
        "        transaction.put(records, row, {_BATCHES: advanced(progress, number).to_json()})\n",
        "",
        _FAULTS,
    ),
    Mutation(
        "a function of foreachBatch is called for a batch that is on record",
        "client/spark/streaming.py",
        '        if _verdict(progress, query, WHOLE_QUERY, number) == "skip":',
        "        if False:",
        _STREAMING + "test_a_function_of_foreach_batch_is_not_called_for_what_has_landed",
    ),
    Mutation(
        "a batch that is on record is written again",
        "client/spark/progress.py",
        "batch > progress.last:",
        "batch >= progress.last:",
        _STREAMING + "test_a_batch_that_is_on_record_is_dropped_though_it_was_computed_differently",
    ),
    Mutation(
        "two incarnations of a query do not conflict by their record",
        "client/spark/streaming.py",
        "advanced(progress, batch).to_json()})",
        "advanced(progress, batch).to_json()}, conflict_free=True)",
        _STREAMING + "test_two_incarnations_conflict_by_their_record_alone",
    ),
    Mutation(
        "a batch that conflicts with another writer counts as written",
        "client/spark/streaming.py",
        '        if _verdict(latest, part.query, table, batch) != "skip":\n            raise\n',
        "        _verdict(latest, part.query, table, batch)\n",
        _STREAMING + "test_a_conflict_over_rows_fails_the_batch_which_can_be_repeated",
    ),
    Mutation(
        "a batch below the record is skipped as if it were known",
        "client/spark/progress.py",
        'return "skip" if batch == progress.last else "refuse"',
        'return "skip"',
        _PROGRESS + "test_a_batch_is_judged_by_what_is_on_record",
    ),
    Mutation(
        "input that came after a checkpoint was put back is dropped as if it had landed",
        "client/spark/progress.py",
        "batch == progress.last else",
        "batch >= progress.first else",
        _STREAMING + "test_input_that_came_after_a_checkpoint_was_put_back_is_refused_rather_than_lost",
    ),
    Mutation(
        "a record covers a gap of which nothing is known",
        "client/spark/progress.py",
        "    if progress is None or batch != progress.last + 1:",
        "    if progress is None:",
        _PROGRESS + "test_a_record_begins_anew_after_a_gap",
    ),
    Mutation(
        "a checkpoint is believed whose query has not come to the batch",
        "client/spark/query_identity.py",
        "if offsets is None or ended is not None:",
        "if ended is not None:",
        _IDENTITY + "test_a_checkpoint_of_another_query_is_refused",
    ),
    Mutation(
        "a checkpoint is believed whose query has ended the batch",
        "client/spark/query_identity.py",
        "if offsets is None or ended is not None:",
        "if offsets is None:",
        _IDENTITY + "test_a_checkpoint_of_another_query_is_refused",
    ),
    Mutation(
        "the name of a checkpoint is a pattern",
        "client/spark/query_identity.py",
        r'f"\\{each}" if each in _PATTERN_CHARACTERS else each',
        "each",
        _IDENTITY + "test_the_name_of_a_checkpoint_is_no_pattern",
    ),
]
