"""The broken rules, of all rooms: one table a room, in the order of DESIGN's sections."""

from __future__ import annotations

from tests.mutations.access_rules import ACCESS_RULES
from tests.mutations.adoption_rules import ADOPTION_RULES
from tests.mutations.asyncio_rules import ASYNCIO_RULES
from tests.mutations.backup_rules import BACKUP_RULES
from tests.mutations.changes_rules import CHANGES_RULES
from tests.mutations.claim_rules import CLAIM_RULES
from tests.mutations.client_rules import CLIENT_RULES
from tests.mutations.column_rules import COLUMN_RULES
from tests.mutations.commit_table_rules import COMMIT_TABLE_RULES
from tests.mutations.console_rules import CONSOLE_RULES
from tests.mutations.drill_rules import DRILL_RULES
from tests.mutations.failover_rules import FAILOVER_RULES
from tests.mutations.kernel_rules import KERNEL_RULES
from tests.mutations.lease_rules import LEASE_RULES
from tests.mutations.metrics_rules import METRICS_RULES
from tests.mutations.mutation import Mutation
from tests.mutations.observing_rules import OBSERVING_RULES
from tests.mutations.operating_rules import OPERATING_RULES
from tests.mutations.page_rules import PAGE_RULES
from tests.mutations.pipeline_rules import PIPELINE_RULES
from tests.mutations.region_rules import REGION_RULES
from tests.mutations.rest_rules import REST_RULES
from tests.mutations.snapshot_rules import SNAPSHOT_RULES
from tests.mutations.spark_rules import SPARK_RULES
from tests.mutations.store_rules import STORE_RULES
from tests.mutations.streaming_rules import STREAMING_RULES
from tests.mutations.table_rules import TABLE_RULES
from tests.mutations.transaction_rules import TRANSACTION_RULES
from tests.mutations.tso_rules import TSO_RULES
from tests.mutations.upgrade_rules import UPGRADE_RULES
from tests.mutations.vacuum_rules import VACUUM_RULES

RULES: list[Mutation] = [
    *LEASE_RULES,
    *COMMIT_TABLE_RULES,
    *KERNEL_RULES,
    *TSO_RULES,
    *PIPELINE_RULES,
    *CLIENT_RULES,
    *TRANSACTION_RULES,
    *CLAIM_RULES,
    *ADOPTION_RULES,
    *ASYNCIO_RULES,
    *CHANGES_RULES,
    *PAGE_RULES,
    *FAILOVER_RULES,
    *VACUUM_RULES,
    *SNAPSHOT_RULES,
    *STREAMING_RULES,
    *SPARK_RULES,
    *STORE_RULES,
    *TABLE_RULES,
    *BACKUP_RULES,
    *COLUMN_RULES,
    *OBSERVING_RULES,
    *METRICS_RULES,
    *OPERATING_RULES,
    *REGION_RULES,
    *REST_RULES,
    *CONSOLE_RULES,
    *DRILL_RULES,
    *UPGRADE_RULES,
    *ACCESS_RULES,
]
