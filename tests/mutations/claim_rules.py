"""Broken rules of claims: what a key names lands once, with the transaction that claimed it, or not at all."""

from __future__ import annotations

from tests.mutations.mutation import Mutation

_CLAIMS = "unit/client/transactions/test_claims.py::"
_SPARK = "unit/client_spark/test_spark_claims.py::"
_FAULTS = _SPARK + "test_a_write_lands_exactly_once_whichever_call_its_first_run_ended_at"

CLAIM_RULES = [
    Mutation(
        "a key is claimed, and nothing is written of it",
        "client/transactions/transaction.py",
        "        self.put(records, row, {RECORD: claim.to_json()})\n",
        "",
        _CLAIMS + "test_what_has_landed_is_not_landed_again",
    ),
    Mutation(
        "a key that has landed is claimed anew",
        "client/transactions/transaction.py",
        "            return found.start_timestamp == self.start_timestamp\n",
        "            return True\n",
        _CLAIMS + "test_what_has_landed_is_not_landed_again",
    ),
    Mutation(
        "a transaction that claims its key twice takes itself for another one",
        "client/transactions/transaction.py",
        "            return found.start_timestamp == self.start_timestamp\n",
        "            return False\n",
        _CLAIMS + "test_a_claim_is_of_no_account_until_its_transaction_has_committed",
    ),
    Mutation(
        "two that claim one key at once both land",
        "client/transactions/transaction.py",
        "        self.put(records, row, {RECORD: claim.to_json()})\n",
        "        self.put(records, row, {RECORD: claim.to_json()}, conflict_free=True)\n",
        _CLAIMS + "test_of_two_that_claim_a_key_and_overlap_one_commits",
    ),
    Mutation(
        "in a table that was made anew a key has landed that landed in the one before",
        "client/transactions/transaction.py",
        "(found := Claim.parse(row, value)).incarnation == incarnation:",
        "(found := Claim.parse(row, value)):",
        _CLAIMS + "test_a_table_has_keys_of_its_own_for_as_long_as_it_stands",
    ),
    Mutation(
        "a write of Spark's has landed where its key landed in another table",
        "client/spark/writer.py",
        "transaction.claim(self._options.claim, table=self._mapping.table)",
        "transaction.claim(self._options.claim)",
        _SPARK + "test_each_table_has_keys_of_its_own_and_one_that_is_made_anew_has_none",
    ),
    Mutation(
        "a read-only transaction is told that it lands a key",
        "client/transactions/transaction.py",
        "        self._standing.require_writable()\n        row = row_of(key",
        "        row = row_of(key",
        _CLAIMS + "test_a_read_only_transaction_claims_nothing",
    ),
    Mutation(
        "a record of a newer release is read as one of this",
        "client/catalog/record_tables.py",
        '        written_as.require_known(fields["format"])\n',
        "",
        _CLAIMS + "test_a_record_that_cannot_be_read_is_no_reason_to_land_again",
    ),
    Mutation(
        "each claim asks HBase for the names of all tables",
        "client/catalog/catalog.py",
        "        if stands is None or (believed is None and name not in self._store.table_names()):",
        "        if stands is None or name not in self._store.table_names():",
        _CLAIMS + "test_a_table_that_was_just_used_is_not_asked_about",
    ),
    Mutation(
        "a write of Spark's commits without its claim",
        "client/spark/writer.py",
        "            transaction.claim(key, table=self._mapping.table)\n",
        "            pass\n",
        _FAULTS,
    ),
    Mutation(
        "the tasks of a write that has landed write",
        "client/spark/writer.py",
        "        if self._has_landed:\n            deque(iterator",
        "        if False:\n            deque(iterator",
        _SPARK + "test_a_write_that_is_started_again_writes_nothing",
    ),
    Mutation(
        "the tasks of a write that has landed leave their rows to Spark, which waits",
        "client/spark/writer.py",
        "            deque(iterator, maxlen=0)  # Spark waits until its rows are taken\n",
        "",
        _SPARK + "test_a_write_that_is_started_again_writes_nothing",
    ),
    Mutation(
        "an overwrite that has landed deletes what came later",
        "client/spark/writer.py",
        "        if self._has_landed:\n            manager.resume",
        "        if False:\n            manager.resume",
        _SPARK + "test_an_overwrite_that_has_landed_deletes_nothing",
    ),
    Mutation(
        "a write with a claim ends well whatever its conflict was",
        "client/spark/writer.py",
        "            if key is None or claim_of(manager, key, table=self._mapping.table) is None:",
        "            if key is None:",
        _SPARK + "test_a_conflict_that_has_nothing_to_do_with_the_claim_is_told",
    ),
    Mutation(
        "of two writes with one claim that run at once one fails",
        "client/spark/writer.py",
        "            if key is None or claim_of(manager, key, table=self._mapping.table) is None:\n"
        "                raise\n",
        "            raise\n",
        _SPARK + "test_of_two_that_run_at_once_one_lands_and_the_other_ends_well",
    ),
    Mutation(
        "claims over REST take no room",
        "rest/held_transactions.py",
        "self._in_room(held, CLAIM_BYTES_MAX, lambda",
        "self._in_room(held, 0, lambda",
        "unit/rest/test_rest_transactions.py::test_claims_take_room",
    ),
    Mutation(
        "what is younger than was said is forgotten, too",
        "client/claims/recorded.py",
        "and (before is None or claim.began < before))",
        ")",
        "unit/client/claims/test_claims_on_record.py::test_keys_are_forgotten_by_name_prefix_and_age",
    ),
    Mutation(
        "keys are forgotten that were only to be counted",
        "client/claims/commands.py",
        "            counted = sum(1 for _ in chosen) if dry_run else _forget(manager, chosen)",
        "            counted = _forget(manager, chosen)",
        "unit/client/claims/test_claims_on_record.py::test_keys_are_forgotten_by_name_prefix_and_age",
    ),
]
